/**
 * Gives texts to the thread of `worker.ts`, one after the other. The texts may be hostile: a text that takes too long ends the thread, and
 * the next text begins a new one.
 */
import workerUrl from './worker.ts?worker&url';

/** Time limit for one text, in milliseconds. */
const limitMs = 2_000;

/** The work of the thread on its texts. */
export type Work =
  | { readonly kind: 'markdown'; readonly text: string }
  /** `name`: name of the file of which the texts are parts. */
  | { readonly kind: 'code'; readonly name: string; readonly texts: readonly string[] };

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL: (url: string) => string },
  ): { createScriptURL(url: string): string };
}
const urls = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes?.createPolicy('markdown-worker', {
  createScriptURL: () => workerUrl,
});

interface Job {
  readonly work: Work;
  readonly done: (result: unknown) => void;
}

let worker: Worker | undefined;
let isReady = false;
let current: (Job & { readonly timer: ReturnType<typeof setTimeout> }) | undefined;
const waiting: Job[] = [];

function startWorker(): void {
  isReady = false;
  worker = new Worker(urls?.createScriptURL(workerUrl) ?? workerUrl, { type: 'module' });
  worker.addEventListener('message', ({ data }: MessageEvent<{ isReady?: true; result?: unknown }>) => {
    if (data.isReady) isReady = true;
    else finish(data.result);
    sendNext();
  });
  worker.addEventListener('error', () => {
    worker = undefined;
    finish(undefined);
    for (const { done } of waiting.splice(0)) done(undefined);
  });
}

function finish(result: unknown): void {
  if (current === undefined) return;
  clearTimeout(current.timer);
  const { done } = current;
  current = undefined;
  done(result);
}

function sendNext(): void {
  const [next] = waiting;
  if (current !== undefined || next === undefined) return;
  if (worker === undefined) startWorker();
  if (!isReady) return;
  waiting.shift();
  const timer = setTimeout(() => {
    worker?.terminate();
    worker = undefined;
    finish(undefined);
    sendNext();
  }, limitMs);
  current = { ...next, timer };
  worker?.postMessage(next.work);
}

/** Returns the result of the thread. Returns undefined if the text takes too long or cannot be parsed, or if `signal` is aborted. */
export async function inThread(work: Work, signal: AbortSignal): Promise<unknown> {
  return await new Promise((resolve) => {
    const job = { work, done: resolve };
    waiting.push(job);
    signal.addEventListener('abort', () => {
      const index = waiting.indexOf(job);
      if (index >= 0) waiting.splice(index, 1);
      resolve(undefined);
    });
    sendNext();
  });
}
