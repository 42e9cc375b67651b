/** Makes HTML from Markdown in a thread of its own: hostile text can take marked minutes, and the page must stay usable meanwhile. */
import { Marked } from '/assets/marked.js';

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

/** Undefined: marked cannot read the text, for example because it is nested too deeply. */
function htmlOf(text) {
  try {
    return marked.parse(text);
  } catch {
    return undefined;
  }
}

addEventListener('message', ({ data: text }) => postMessage({ html: htmlOf(text) }));
postMessage({ isReady: true });
