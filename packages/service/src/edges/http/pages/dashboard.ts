import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { cachedAnswer } from '../server/cached-answer.ts';
import { html, htmlPage } from './html.ts';
import { pageHeaders, sendPage } from './send-page.ts';

/** The folder of the files that `npm run build` makes from `packages/dashboard`. */
const dist = path.resolve(import.meta.dirname, '../../../../../dashboard/dist');

/** First segments of the addresses that the dashboard's router knows (`packages/dashboard/src/app/router.tsx`). */
const screens = [
  'runs',
  'compare',
  'inbox',
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

/** For a script that runs as a worker, the policy in the headers of the script applies, not the policy of the page. */
const workerPolicy = "default-src 'none'; script-src 'self'";

/** Names with a hash of the content, which clients cache forever. */
const hashedName = /-[\w-]{7}\.\w+$/;

const notBuilt = htmlPage({
  title: 'The dashboard is not built',
  body: html`<main class="doc" id="main"><h1>The dashboard is not built</h1>
<p>The API and all runs work. The build of the dashboard failed or was never started: run <code>npm run build</code> in the folder of Runyard, and read its output. <code>.runyard/dashboard.log</code> has the output of the build at the last start.</p>
<p><code>bin/runyard runs</code> and <code>bin/runyard logs</code> show runs in a terminal.</p></main>`,
});

const beingBuilt = htmlPage({
  title: 'The dashboard is being built',
  body: html`<main class="doc" id="main"><h1>The dashboard is being built</h1>
<p>The API and all runs work already. This page shows the dashboard as soon as it is ready, usually within a minute.</p></main>`,
});

/** Seconds after which a browser asks again for a dashboard that is being built. */
const askAgainSeconds = 3;

/** Returns whether the start script installs or builds at this time (`take_install_lock` in bin/prepare.sh). */
async function isBuilding(): Promise<boolean> {
  const pid = Number(await readFile(path.resolve(dist, '../../../.runyard/install.lock/pid'), 'utf8').catch(() => ''));
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

type Send = (reply: FastifyReply) => Promise<FastifyReply>;

interface Built {
  readonly sendFrame: Send;
  /** The files that the frame loads, by name. */
  readonly files: ReadonlyMap<string, Send>;
  /** The style sheet of the frame. */
  readonly sheet: string;
}

/** Reads the built dashboard; undefined: it is not built. */
async function readBuilt(): Promise<Built | undefined> {
  const frame = await readFile(path.join(dist, 'index.html'), 'utf8').catch(() => undefined);
  if (frame === undefined) return undefined;
  let sheet = '';
  const files = new Map<string, Send>();
  for (const name of await readdir(path.join(dist, 'app'))) {
    const type = types[path.extname(name)];
    if (type === undefined) continue;
    const text = await readFile(path.join(dist, 'app', name), 'utf8');
    if (type === types['.css'] && frame.includes(`/app/${name}`)) sheet += text;
    const cacheControl = hashedName.test(name) ? 'public, max-age=31536000, immutable' : 'no-cache';
    const send = fixedAnswer(text, cacheControl);
    files.set(name, (reply) => send(reply.type(type).header('content-security-policy', workerPolicy)));
  }
  return { sendFrame: fixedAnswer(frame), files, sheet };
}

const fixedAnswer = (text: string, cacheControl?: string): Send =>
  cachedAnswer(
    () => '',
    () => text,
    cacheControl,
  );

/**
 * Registers the frame of the dashboard at the addresses of the dashboard's screens, and the files that the frame loads. The frame holds no
 * data. If the dashboard is not built yet, its files are read as soon as they exist. Returns a function that returns the style sheet of the
 * frame; empty if the dashboard is not built.
 */
export async function registerDashboard(app: FastifyInstance): Promise<() => string> {
  let built = await readBuilt();
  const sendFrame = async (reply: FastifyReply): Promise<FastifyReply> => {
    built ??= await readBuilt();
    if (built !== undefined) return await built.sendFrame(pageHeaders(reply));
    if (!(await isBuilding())) return sendPage(reply, notBuilt);
    return sendPage(reply.header('refresh', askAgainSeconds), beingBuilt);
  };
  for (const url of ['/', ...screens.flatMap((screen) => [`/${screen}`, `/${screen}/*`])])
    app.get(url, async (_request, reply) => await sendFrame(reply));
  app.get<{ Params: { name: string } }>('/app/:name', async ({ params }, reply) => {
    const send = built?.files.get(params.name);
    return send === undefined ? reply.callNotFound() : await send(reply);
  });
  return () => built?.sheet ?? '';
}
