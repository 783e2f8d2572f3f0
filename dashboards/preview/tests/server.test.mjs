import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pageServer } from '../server.mjs';

const app = mkdtempSync(join(tmpdir(), 'preview-server-'));
let page;

before(async () => {
  mkdirSync(join(app, 'dist'));
  writeFileSync(join(app, 'dist', 'index.html'), 'the page');
  writeFileSync(join(app, 'secret'), 'not for the page');
  page = await pageServer({ app, folder: app, dashboards: ['one'], recordings: {}, port: 0 });
  writeFileSync(join(app, 'one.json'), '{}');
});
after(async () => {
  await page.end();
  rmSync(app, { recursive: true });
});

/** The status of a path that is sent as it is. */
const status = (path) =>
  new Promise((resolve, reject) => {
    const { port } = new URL(page.address);
    request({ port, path }, (answer) => resolve(answer.resume().statusCode)).on('error', reject).end();
  });

test('the page and its dashboards are served, on 127.0.0.1', async () => {
  assert.match(page.address, /^http:\/\/127\.0\.0\.1:/);
  assert.equal(await status('/'), 200);
  assert.equal(await status('/dashboards/one.json'), 200);
});

test('nothing outside the page is served, and no address ends the server', async () => {
  for (const path of ['/../secret', '/..%2fsecret', '/dashboards/secret.json', '/dashboards/..%2fsecret', '/prometheus/one/api/v1/query', '/public/build/img/icons/..%2f..%2f..%2f..%2f..%2f..%2f..%2fsecret']) {
    assert.equal(await status(path), 404, path);
  }
  assert.equal(await status('/%E0%A4%A'), 400);
  assert.equal(await status('/'), 200);
});

test('the browser is told to ask no other host', async () => {
  const policy = (await fetch(page.address)).headers.get('content-security-policy');
  assert.match(policy, /default-src 'self'/);
  assert.doesNotMatch(policy, /http|\*/);
});
