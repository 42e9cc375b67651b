/** Shows Markdown of agents and people, which is hostile: see docs/decisions/pages.md. */
import DOMPurify from '/assets/dompurify.js';
import { element } from './elements.js';

/** Longer texts are shown without Markdown, because each new piece of a text renders the whole text again. */
const maxLength = 100_000;
/** Time for one text, milliseconds. A text that takes longer is shown without Markdown. */
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
};

const workerUrl = '/assets/run/markdown-worker.js';
const urls = globalThis.trustedTypes?.createPolicy('markdown-worker', { createScriptURL: () => workerUrl });

/** The worker, once it has been started; null: this browser cannot start it. */
let worker;
let isReady = false;
/** The text that the worker has, and the timer that ends its time. */
let current;
/** The newest text of each place that waits for the worker, with the function that shows a change of the page. */
const waiting = new Map();
/** Places whose text took too long: a longer one would take longer still. */
const plain = new WeakSet();

const plainText = (text) => element('pre', { className: 'long', textContent: text });

/** Returns the nodes of the HTML; of the text, if there is none. */
function nodesOf(html, text) {
  if (html === undefined) return plainText(text);
  const fragment = DOMPurify.sanitize(html, allowed);
  for (const link of fragment.querySelectorAll('a')) {
    link.target = '_blank';
    link.rel = 'noopener noreferrer nofollow';
  }
  for (const table of fragment.querySelectorAll('table')) {
    const frame = element('div', { className: 'scroll', tabIndex: 0 });
    table.replaceWith(frame);
    frame.append(table);
  }
  return fragment;
}

function startWorker() {
  isReady = false;
  worker = new Worker(urls?.createScriptURL(workerUrl) ?? workerUrl, { type: 'module' });
  worker.addEventListener('message', ({ data }) => {
    if (data.isReady) isReady = true;
    else finish(data.html);
    sendNext();
  });
  worker.addEventListener('error', () => {
    worker = null;
    for (const [place, { text, change }] of waiting) change(() => place.replaceChildren(plainText(text)));
    waiting.clear();
  });
}

/** Shows the text that the worker had; as plain text if `html` is undefined. */
function finish(html) {
  const { place, text, change, timer } = current;
  clearTimeout(timer);
  current = undefined;
  change(() => place.replaceChildren(nodesOf(html, text)));
}

function giveUp() {
  const { place, text } = current;
  worker.terminate();
  worker = undefined;
  plain.add(place);
  current.text = waiting.get(place)?.text ?? text;
  waiting.delete(place);
  finish(undefined);
  sendNext();
}

function sendNext() {
  const [first] = waiting;
  if (current !== undefined || first === undefined) return;
  if (worker === undefined) startWorker();
  if (!isReady) return;
  const [place, { text, change }] = first;
  waiting.delete(place);
  current = { place, text, change, timer: setTimeout(giveUp, limitMs) };
  worker.postMessage(text);
}

/**
 * Shows the text in `place`: at once as it is if the place is empty, and soon as Markdown. Calls `change` with the function that changes
 * the page. A later text for the same place replaces one that still waits.
 */
export function showMarkdown(place, text, change = (work) => work()) {
  const isPlain = worker === null || text.length > maxLength || plain.has(place);
  if (isPlain) waiting.delete(place);
  if (isPlain || !place.hasChildNodes()) change(() => place.replaceChildren(plainText(text)));
  if (isPlain) return;
  waiting.set(place, { text, change });
  sendNext();
}
