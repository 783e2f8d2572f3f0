// The page's server, on 127.0.0.1 only: the built page, the dashboards, fonts and icons, and the recordings' Prometheus.
import { createReadStream, existsSync, readFileSync, statSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { extname, join, normalize } from 'node:path';

const TYPES = {
  '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json',
  '.svg': 'image/svg+xml', '.woff2': 'font/woff2', '.png': 'image/png',
};
/** The browser refuses whatever is not of this server. Grafana's table compiles its row reader, hence the eval. */
const POLICY = [
  "default-src 'self'", "script-src 'self' 'unsafe-eval'", "style-src 'self' 'unsafe-inline'", "img-src 'self' data: blob:", "font-src 'self' data:",
  "worker-src 'self' blob:", "object-src 'none'", "frame-ancestors 'none'",
].join('; ');
const INTER = '@fontsource/inter/files/inter-latin-';
/** Fonts by the names under which Grafana's styles ask for them. */
const FONTS = {
  'inter/Inter-Regular.woff2': `${INTER}400-normal.woff2`,
  'inter/Inter-Medium.woff2': `${INTER}500-normal.woff2`,
  'inter/Inter-Italic.woff2': `${INTER}400-italic.woff2`,
  'inter/Inter-MediumItalic.woff2': `${INTER}500-italic.woff2`,
};
const MONO = '@fontsource/roboto-mono/files/roboto-mono-latin-400-normal.woff2';

/** `{address, end()}`. `recordings` are by scenario, `dashboards` names of files in `folder`. */
export async function pageServer({ app, folder, dashboards, recordings, port }) {
  const modules = join(app, 'node_modules');
  const contents = {
    dashboards,
    scenarios: Object.fromEntries(Object.entries(recordings).map(([name, { from, to }]) => [name, { from, to }])),
  };

  function fileOf(path) {
    const font = path.match(/^\/public\/fonts\/(.+)$/)?.[1];
    if (font) return join(modules, FONTS[font] ?? MONO);
    const icon = path.match(/^\/public\/build\/img\/icons\/(.+)$/)?.[1];
    if (icon) return join(modules, '@grafana/ui/dist/public/img/icons', icon);
    return join(app, 'dist', path === '/' ? 'index.html' : path);
  }

  function answer(asked, reply) {
    let url, path;
    try {
      url = new URL(asked.url, 'http://here');
      path = normalize(decodeURIComponent(url.pathname));
    } catch {
      return reply.writeHead(400).end('no address');
    }
    reply.setHeader('Content-Security-Policy', POLICY);
    reply.setHeader('X-Content-Type-Options', 'nosniff');
    reply.setHeader('Cache-Control', 'no-store');
    const json = (text) => reply.setHeader('Content-Type', TYPES['.json']).end(text);
    if (path === '/contents.json') return json(JSON.stringify(contents));
    const dashboard = path.match(/^\/dashboards\/([\w-]+)\.json$/)?.[1];
    if (dashboards.includes(dashboard)) return json(readFileSync(join(folder, `${dashboard}.json`)));
    const [, scenario, question] = path.match(/^\/prometheus\/([\w-]+)(\/api\/v1\/.+)$/) ?? [];
    if (recordings[scenario]) return passedOn(asked, reply, recordings[scenario].address + question + url.search);
    const file = fileOf(path);
    if (!existsSync(file) || !statSync(file).isFile()) return reply.writeHead(404).end('not found');
    reply.setHeader('Content-Type', TYPES[extname(file)] ?? 'application/octet-stream');
    return createReadStream(file).pipe(reply);
  }

  const server = createServer(answer);
  await new Promise((resolve, reject) => server.on('error', reject).listen(port, '127.0.0.1', resolve));
  return {
    address: `http://127.0.0.1:${server.address().port}`,
    end: () => new Promise((resolve) => server.close(resolve) && server.closeAllConnections()),
  };
}

function passedOn(asked, reply, target) {
  const headers = { 'content-type': asked.headers['content-type'] ?? '' };
  const onward = request(target, { method: asked.method, headers }, (back) => {
    reply.writeHead(back.statusCode, { 'Content-Type': back.headers['content-type'] });
    back.pipe(reply);
  });
  onward.on('error', (error) => reply.writeHead(502).end(JSON.stringify({ status: 'error', error: error.message })));
  asked.pipe(onward);
}
