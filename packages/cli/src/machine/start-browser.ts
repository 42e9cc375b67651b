/** Starts the browser of this desktop. */
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { signInCodeSeconds } from '@runyard/contract/team/browser-sessions';
import openWithSystem from 'open';
import type { Context } from '../context/context.ts';

const folderPrefix = 'runyard-open-';

/** Returns why no browser can be started. Returns null if a browser may exist. */
export function whyNoBrowser(env: Context['env'], platform: string = process.platform): string | null {
  if (env.BROWSER || platform === 'darwin' || platform === 'win32' || env.WSL_DISTRO_NAME) return null;
  return env.DISPLAY || env.WAYLAND_DISPLAY ? null : 'this machine has no desktop';
}

/** Starts the browser with a URL. Resolves when it was started. */
async function startBrowser(url: string): Promise<void> {
  const started = await openWithSystem(url);
  await new Promise<void>((resolve, reject) => {
    // Waits at most two seconds for the end of the process. A launcher ends at once, but a browser that was started directly continues to
    // run.
    const timer = setTimeout(resolve, 2000);
    started.once('error', reject);
    started.once('exit', (code) => {
      clearTimeout(timer);
      if (code === 0 || code === null) resolve();
      else reject(new Error(`the browser's launcher ended with exit code ${code}`));
    });
  });
  started.unref();
}

/** Removes pages of earlier commands whose links have expired. */
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
 * Writes a page that redirects to the link. Only this user can read the page. Returns the URL of the page. The browser gets this URL
 * and not the link, because every user of the machine can see the arguments of a process, and the link contains a secret.
 */
async function writeRedirect(link: string): Promise<string> {
  await removeOldFiles();
  const file = path.join(await mkdtemp(path.join(tmpdir(), folderPrefix)), 'runyard.html');
  const href = link.replaceAll('&', '&amp;');
  const page = `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=${href}"><title>Runyard</title><a href="${href}">Open Runyard</a>\n`;
  await writeFile(file, page, { mode: 0o600 });
  return pathToFileURL(file).href;
}

/** Opens a link that other users of the machine must not see. Returns null if the browser was started, and otherwise the reason. */
export async function openPrivately(link: string): Promise<string | null> {
  return await writeRedirect(link)
    .then(startBrowser)
    .then(() => null, reasonOf);
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
