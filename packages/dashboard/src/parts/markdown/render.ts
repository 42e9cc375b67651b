/** Renders Markdown of agents and people, which may be hostile (`docs/decisions/dashboard.md`). */

import DOMPurify from 'dompurify';
import { look } from '../look.ts';
import { inThread } from './jobs.ts';
import styles from './markdown.module.css';

/**
 * Maximum number of characters of a text that is rendered. Longer texts are shown as plain text, because each new piece of a text renders
 * the whole text again.
 */
const maxLength = 100_000;

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

/**
 * Returns the rendered nodes of the text. Returns undefined if the text is too long, takes too long, or cannot be parsed; the page then
 * shows the plain text.
 */
export async function renderMarkdown(text: string, signal: AbortSignal): Promise<DocumentFragment | undefined> {
  if (text.length > maxLength) return undefined;
  const html = await inThread({ kind: 'markdown', text }, signal);
  if (typeof html !== 'string') return undefined;
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
    frame.className = styles.table ?? '';
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
  note.className = look({ tone: 'dim', small: true });
  note.textContent = ` (${host})`;
  link.append(note);
}
