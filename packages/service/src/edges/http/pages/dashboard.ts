import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';
import { cachedAnswer } from '../server/cached-answer.ts';
import { workerPolicy } from './assets.ts';
import { html, htmlPage } from './html.ts';
import { pageHeaders } from './send-page.ts';

/** The folder of the files that `npm run build` makes from `packages/dashboard`. */
const dist = path.join(path.dirname(fileURLToPath(import.meta.resolve('@runyard/dashboard/package.json'))), 'dist');

/** First segments of the addresses that the dashboard's router knows (`packages/dashboard/src/app/router.tsx`). */
const screens = [
  'runs',
  'needs-answer',
  'schedules',
  'factories',
  'environments',
  'agents',
  'workers',
  'usage',
  'settings',
  'sign-in',
  'command-line',
];

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
};

/** Names with a hash of the content, which clients cache forever. */
const hashedName = /-[\w-]{7}\.\w+$/;

const notBuilt = htmlPage({
  title: 'The dashboard is not built',
  body: html`<main class="doc" id="main"><h1>The dashboard is not built</h1>
<p>The API and all runs work. The build of the dashboard failed or was never started: run <code>npm run build</code> in the folder of Runyard, read its output, then restart the service. <code>.runyard/dashboard.log</code> has the output of the build at the last start.</p>
<p><code>bin/runyard runs</code> and <code>bin/runyard logs</code> show runs in a terminal.</p></main>`,
});

/**
 * Registers the frame of the dashboard at the addresses of the dashboard's screens, and the files that the frame
 * loads. The frame holds no data. Returns the style sheet of
 * the frame; empty if the dashboard is not built.
 */
export async function registerDashboard(app: FastifyInstance): Promise<string> {
  const frame = await readFile(path.join(dist, 'index.html'), 'utf8').catch(() => notBuilt);
  const sendFrame = cachedAnswer(
    () => '',
    () => frame,
  );
  for (const url of ['/', ...screens.flatMap((screen) => [`/${screen}`, `/${screen}/*`])])
    app.get(url, async (_request, reply) => await sendFrame(pageHeaders(reply)));

  let sheet = '';
  for (const name of await readdir(path.join(dist, 'app')).catch(() => [])) {
    const type = types[path.extname(name)];
    if (type === undefined) continue;
    const text = await readFile(path.join(dist, 'app', name), 'utf8');
    if (type === types['.css'] && frame.includes(`/app/${name}`)) sheet += text;
    const cacheControl = hashedName.test(name) ? 'public, max-age=31536000, immutable' : 'no-cache';
    const sendFile = cachedAnswer(
      () => '',
      () => text,
      cacheControl,
    );
    app.get(
      `/app/${name}`,
      async (_request, reply) => await sendFile(reply.type(type).header('content-security-policy', workerPolicy)),
    );
  }
  return sheet;
}
