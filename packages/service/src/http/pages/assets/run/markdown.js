/** Renders Markdown of agents and people, which is hostile: see docs/decisions/pages.md. */
import DOMPurify from '/assets/dompurify.js';
import { Marked } from '/assets/marked.js';
import { element } from './elements.js';

/** Longer texts are shown without Markdown, because each new piece of a text renders the whole text again. */
const maxLength = 100_000;

const escapes = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escapeHtml = (text) => text.replaceAll(/[&<>"']/g, (char) => escapes[char]);

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // Raw HTML is shown as text.
    html: ({ text }) => escapeHtml(text),
    // An image would tell its server who reads the run, so a link replaces it.
    image({ href, text }) {
      return `<a href="${escapeHtml(href)}">${escapeHtml(text || 'image')}</a>`;
    },
    // The page itself uses headings of the levels 1 and 2.
    heading({ tokens, depth }) {
      const level = Math.min(6, depth + 2);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
    },
    checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
  },
});

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

/** Returns the text as nodes of the page. */
export function renderMarkdown(text) {
  if (text.length > maxLength) return element('pre', { className: 'long', textContent: text });
  const fragment = DOMPurify.sanitize(marked.parse(text), allowed);
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
