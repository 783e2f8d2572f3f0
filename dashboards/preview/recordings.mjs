// Recordings back-filled into blocks of a real Prometheus, and that Prometheus started on them.
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

const SUFFIX = '.om.gz';
const READY_SECONDS = 60;
const END_SECONDS = 10;

export function recordedScenarios(folder) {
  const files = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(SUFFIX)) : [];
  return files.map((name) => name.slice(0, -SUFFIX.length)).sort();
}

/** Seconds before the first sample that are shown, too: what led to it, such as the start of the engine, is marked there. */
const BEFORE_SECONDS = 45;

/** First and last moment of a recording, in seconds. */
function boundsOf(text) {
  let [from, to] = [Infinity, -Infinity];
  for (const line of text.split('\n')) {
    if (!line || line.startsWith('#')) continue;
    const at = Number(line.slice(line.lastIndexOf(' ') + 1));
    from = Math.min(from, at);
    to = Math.max(to, at);
  }
  return { from, to };
}

/** Writes the blocks of a recording once; a changed recording gets new ones. */
function backfilled(file, folder, tools) {
  const packed = readFileSync(file);
  const digest = createHash('sha256').update(packed).digest('hex');
  const stamp = join(folder, 'recording.json');
  if (existsSync(stamp)) {
    const known = JSON.parse(readFileSync(stamp, 'utf8'));
    if (known.digest === digest) return known;
  }
  rmSync(folder, { recursive: true, force: true });
  const making = `${folder}.${process.pid}`;
  mkdirSync(join(making, 'tsdb'), { recursive: true });
  const text = gunzipSync(packed).toString();
  const plain = join(making, 'samples.om');
  writeFileSync(plain, text);
  const command = ['tsdb', 'create-blocks-from', 'openmetrics', '--quiet', plain, join(making, 'tsdb')];
  execFileSync(join(tools, 'promtool'), command, { stdio: ['ignore', 'ignore', 'inherit'] });
  rmSync(plain);
  const known = { digest, ...boundsOf(text) };
  writeFileSync(join(making, 'recording.json'), JSON.stringify(known));
  writeFileSync(join(making, 'prometheus.yml'), '{}\n');
  renameSync(making, folder);
  return known;
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().on('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

/** A Prometheus on a recording: `{address, from, to, end()}`, the range to show in seconds. */
export async function served(scenario, recordings, cache, tools) {
  const folder = join(cache, scenario);
  mkdirSync(cache, { recursive: true });
  const { from, to } = backfilled(join(recordings, scenario + SUFFIX), folder, tools);
  const port = await freePort();
  const child = spawn(
    join(tools, 'prometheus'),
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'tsdb')}`,
      '--storage.tsdb.retention.time=100y',
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] }
  );
  let said = '';
  child.stderr.on('data', (text) => (said = (said + text).slice(-2000)));
  const ended = new Promise((resolve) => child.on('exit', resolve));
  const killed = () => child.kill('SIGKILL');
  process.once('exit', killed);
  const end = async () => {
    process.removeListener('exit', killed);
    child.kill('SIGTERM');
    const timer = setTimeout(killed, END_SECONDS * 1000);
    await ended;
    clearTimeout(timer);
  };
  const address = `http://127.0.0.1:${port}`;
  for (const until = Date.now() + READY_SECONDS * 1000; ; ) {
    const ready = await fetch(`${address}/-/ready`).then(({ ok }) => ok, () => false);
    if (ready) return { address, from: from - BEFORE_SECONDS, to, end };
    if (child.exitCode !== null || Date.now() > until) {
      await end();
      throw new Error(`Prometheus did not start on ${scenario}: ${said}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
