/** Renders Markdown of agents and people, which may be hostile (`docs/decisions/dashboard.md`). */
import DOMPurify from 'dompurify';
import workerUrl from './worker.ts?worker&url';

/**
 * Maximum number of characters of a text that is rendered. Longer texts are shown as plain text, because each new piece of a text renders
 * the whole text again.
 */
const maxLength = 100_000;
/** Time limit for rendering one text, in milliseconds. A text that takes longer is shown as plain text. */
const limitMs = 2_000;

const allowed = {
  ALLOWED_TAGS: 'a blockquote br code del em h3 h4 h5 h6 hr li ol p pre strong table tbody td th thead tr ul'.split(
    ' ',
  ),
  ALLOWED_ATTR: ['href', 'title', 'start', 'align'],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
} as const;

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
  readonly text: string;
  readonly done: (html: string | undefined) => void;
}

let worker: Worker | undefined;
let isReady = false;
let current: (Job & { readonly timer: ReturnType<typeof setTimeout> }) | undefined;
const waiting: Job[] = [];

function startWorker(): void {
  isReady = false;
  worker = new Worker(urls?.createScriptURL(workerUrl) ?? workerUrl, { type: 'module' });
  worker.addEventListener('message', ({ data }: MessageEvent<{ isReady?: true; html?: string }>) => {
    if (data.isReady) isReady = true;
    else finish(data.html);
    sendNext();
  });
  worker.addEventListener('error', () => {
    worker = undefined;
    finish(undefined);
    for (const { done } of waiting.splice(0)) done(undefined);
  });
}

function finish(html: string | undefined): void {
  if (current === undefined) return;
  clearTimeout(current.timer);
  const { done } = current;
  current = undefined;
  done(html);
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
  worker?.postMessage(next.text);
}

/**
 * Returns the rendered nodes of the text. Returns undefined if the text is too long, takes too long, or cannot be parsed; the page then
 * shows the plain text.
 */
export async function renderMarkdown(text: string, signal: AbortSignal): Promise<DocumentFragment | undefined> {
  if (text.length > maxLength) return undefined;
  const html = await new Promise<string | undefined>((resolve) => {
    const job = { text, done: resolve };
    waiting.push(job);
    signal.addEventListener('abort', () => {
      const index = waiting.indexOf(job);
      if (index >= 0) waiting.splice(index, 1);
      resolve(undefined);
    });
    sendNext();
  });
  if (html === undefined) return undefined;
  const fragment = DOMPurify.sanitize(html, {
    ...allowed,
    ALLOWED_TAGS: [...allowed.ALLOWED_TAGS],
    ALLOWED_ATTR: [...allowed.ALLOWED_ATTR],
  });
  // A list item needs the direction itself, so that its marker is at the side of its text.
  for (const item of fragment.querySelectorAll('li')) item.dir = 'auto';
  for (const link of fragment.querySelectorAll('a')) {
    link.target = '_blank';
    link.rel = 'noopener noreferrer nofollow';
    showHost(link);
  }
  for (const table of fragment.querySelectorAll('table')) {
    const frame = document.createElement('div');
    frame.className = 'md-table';
    frame.tabIndex = 0;
    table.replaceWith(frame);
    frame.append(table);
  }
  return fragment;
}

/**
 * Adds the host of a link after its text, unless the text already contains this host, because the text could name another host to deceive
 * the reader.
 */
function showHost(link: HTMLAnchorElement): void {
  const host = URL.parse(link.href)?.host;
  if (!host || link.textContent?.includes(host)) return;
  const note = document.createElement('span');
  note.className = 'dim small';
  note.textContent = ` (${host})`;
  link.append(note);
}
