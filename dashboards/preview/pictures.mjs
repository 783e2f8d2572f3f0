// Pictures of dashboards by a headless Chromium, and what the page or the browser complained of.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { chromium } from 'playwright-core';
import sharp from 'sharp';

const DRAWN_MS = 60_000;
const MOST_BYTES = 200 * 1000;
/** Colours of the palette, fewer until the file is small enough. */
const COLOURS = [256, 128, 64, 32];
const FLAGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--force-color-profile=srgb', '--font-render-hinting=none',
];

const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** The browser to use, or undefined when there is none. CHROMIUM names another. */
export function chromiumPath() {
  return process.env.CHROMIUM || BROWSERS.find((path) => existsSync(path));
}

export async function browser(executablePath) {
  return chromium.launch({ executablePath, args: FLAGS });
}

/** Draws one page; writes the picture when `file` is given. `{problems, panels, bytes}`. */
export async function picture(chrome, address, { width, file }) {
  const page = await chrome.newPage({ viewport: { width, height: 900 }, reducedMotion: 'reduce' });
  const problems = [];
  page.on('pageerror', (error) => problems.push(`page: ${error.message}`));
  page.on('console', (message) => message.type() === 'error' && problems.push(`console: ${message.text().trim()}`));
  page.on('requestfailed', (one) => problems.push(`request: ${one.url()} ${one.failure()?.errorText}`));
  page.on('response', (one) => one.status() >= 400 && problems.push(`request: ${one.url()} answered ${one.status()}`));
  page.on('request', (one) => !one.url().startsWith(new URL(address).origin) && outside(one.url()) && problems.push(`request leaves the host: ${one.url()}`));
  let panels = [];
  let bytes = 0;
  try {
    await page.goto(address, { timeout: DRAWN_MS });
    await page.waitForFunction(() => window.__preview?.done, undefined, { timeout: DRAWN_MS });
    const state = await page.evaluate(() => ({ problems: window.__preview.problems, panels: window.__preview.panels }));
    problems.push(...state.problems);
    panels = state.panels;
    if (file) bytes = await saved(await whole(page, width), file);
    if (bytes > MOST_BYTES) problems.push(`${file} has ${bytes} bytes, more than ${MOST_BYTES}`);
  } catch (error) {
    problems.push(`not drawn within ${DRAWN_MS / 1000} s: ${error.message.split('\n')[0]}`);
  }
  await page.close();
  return { problems: [...new Set(problems)], panels, bytes };
}

/** The whole page. The window is made as tall as it: a browser does not draw tables that are out of sight. */
async function whole(page, width) {
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  await page.setViewportSize({ width, height });
  await page.evaluate(() => window.__preview.settled());
  return page.screenshot();
}

const outside = (url) => !/^(data|blob|about):/.test(url);

async function saved(png, file) {
  mkdirSync(dirname(file), { recursive: true });
  let small;
  for (const colours of COLOURS) {
    small = await sharp(png).png({ palette: true, colours, effort: 10, compressionLevel: 9, dither: 0 }).toBuffer();
    if (small.length <= MOST_BYTES) break;
  }
  writeFileSync(file, small);
  return small.length;
}
