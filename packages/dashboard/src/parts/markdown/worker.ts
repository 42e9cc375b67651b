/**
 * Renders Markdown as HTML in a separate thread, because marked can take minutes for hostile text, and the page must stay usable meanwhile.
 */
import { Marked } from 'marked';

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, (char) => escapes[char] ?? char);

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // Show raw HTML as text.
    html: ({ text }) => escapeHtml(text),
    // Replace an image by a link, because loading the image would tell its server who reads the run.
    image: ({ href, text }) => `<a href="${escapeHtml(href)}">${escapeHtml(text || 'image')}</a>`,
    // Move headings to deeper levels, because the page itself uses the levels 1 and 2.
    heading({ tokens, depth }) {
      const level = Math.min(6, depth + 2);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
    },
    checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
  },
});

/** Returns undefined for a text that marked cannot read, for example because it is nested too deeply. */
function htmlOf(text: string): string | undefined {
  try {
    return marked.parse(text, { async: false });
  } catch {
    return undefined;
  }
}

addEventListener('message', ({ data }: MessageEvent<string>) => postMessage({ html: htmlOf(data) }));
postMessage({ isReady: true });
