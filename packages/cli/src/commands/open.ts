import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { signInCodeSeconds, signInFragment } from '@runyard/contract/team/browser-sessions';
import type { Command } from 'commander';
import openWithSystem from 'open';
import { connect } from '../api.ts';
import { type Context, processContext, requireOrigin } from '../context.ts';
import { Failure } from '../failure.ts';
import { runHelp } from '../options.ts';
import { contextAndRunId } from '../run-id.ts';

/** Starts the browser of this desktop with a URL. Resolves when it was started. */
type StartBrowser = (url: string) => Promise<void>;

const folderPrefix = 'runyard-open-';

/** Returns why no browser can be started; null if one may be. */
function whyNoBrowser(env: Context['env'], platform: string = process.platform): string | null {
  if (env.BROWSER || platform === 'darwin' || platform === 'win32' || env.WSL_DISTRO_NAME) return null;
  return env.DISPLAY || env.WAYLAND_DISPLAY ? null : 'this machine has no desktop';
}

const startBrowser: StartBrowser = async (url) => {
  const started = await openWithSystem(url);
  await new Promise<void>((resolve, reject) => {
    // Launchers end at once, but a browser started directly keeps running.
    const timer = setTimeout(resolve, 2000);
    started.once('error', reject);
    started.once('exit', (code) => {
      clearTimeout(timer);
      if (code === 0 || code === null) resolve();
      else reject(new Error(`the browser's launcher ended with exit code ${code}`));
    });
  });
  started.unref();
};

/** Removes the files of links that have expired. */
async function removeOldFiles(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(folderPrefix)) continue;
    const folder = path.join(tmpdir(), name);
    const { mtimeMs, uid } = await stat(folder).catch(() => ({ mtimeMs: Date.now(), uid: -1 }));
    if (uid !== process.getuid?.() || Date.now() - mtimeMs < signInCodeSeconds * 1000) continue;
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Writes a page that leads to the link, for this user only, and returns its URL. Every user of the machine can see the
 * arguments of a browser's process, so the code is not among them.
 */
async function writeRedirect(link: string): Promise<string> {
  await removeOldFiles();
  const file = path.join(await mkdtemp(path.join(tmpdir(), folderPrefix)), 'runyard.html');
  const page = `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=${link}"><title>Runyard</title><a href="${link}">Open the run</a>\n`;
  await writeFile(file, page, { mode: 0o600 });
  return pathToFileURL(file).href;
}

async function latestRunId(context: Context): Promise<string> {
  const { runs } = await connect(context).listRuns({ query: { limit: 1, sort_by: 'created_at' } });
  const [latest] = runs;
  if (!latest) throw new Failure('there is no run yet. Start one: bin/runyard run examples/hello.md');
  return latest.run_id;
}

/**
 * Opens the page of a run in the browser, by a link that signs in once; without `runId`, the page of the newest run.
 * Prints the link if no browser can be started, or with `print`.
 */
export async function open(
  context: Context,
  runId: string | undefined,
  options: { readonly print?: true },
  start: StartBrowser = startBrowser,
): Promise<void> {
  const client = connect(context);
  const { run_id } = await client.getRun({ params: { runId: runId ?? (await latestRunId(context)) } });
  const page = `${requireOrigin(context)}/runs/${run_id}`;
  const { code } = await client.createSignInCode();
  const link = `${page}#${signInFragment}${code}`;
  const problem = options.print
    ? null
    : (whyNoBrowser(context.env) ??
      (await writeRedirect(link)
        .then(start)
        .then(() => 'started', reasonOf)));
  if (problem === 'started') {
    context.out(`${page}\n`);
    context.report('the browser opens this page, signed in. If it does not: bin/runyard open --print');
    return;
  }
  context.out(`${link}\n`);
  const why = problem === null ? '' : `no browser was started: ${problem}. `;
  context.report(
    `${why}The link signs in one browser, within ${signInCodeSeconds} seconds. Anyone who has it acts as you: do not share it.`,
  );
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Declares the command `open`. */
export function declareOpen(command: Command): void {
  command
    .argument('[run]', runHelp)
    .option('--print', 'print the one-time link instead, which signs in one browser within a minute')
    .action(async (run, options) => {
      const [context, runId] = run === undefined ? [processContext()] : await contextAndRunId(run);
      await open(context, runId, options);
    });
}
