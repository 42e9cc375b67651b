/**
 * Renders Markdown as HTML, and finds the words of code, in a separate thread: both can take minutes for hostile text, and the page must
 * stay usable meanwhile.
 */
import { Marked } from 'marked';
import type { Work } from './jobs.ts';

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

/** Returns undefined for code in an unknown language. The highlighter is loaded with the first code. */
async function wordsOf(name: string, texts: readonly string[]): Promise<unknown> {
  const { readCode } = await import('./code-words.ts');
  return readCode(name, texts);
}

addEventListener('message', ({ data }: MessageEvent<Work>) => {
  if (data.kind === 'markdown') return postMessage({ result: htmlOf(data.text) });
  wordsOf(data.name, data.texts).then(
    (result) => postMessage({ result }),
    () => postMessage({}),
  );
});
postMessage({ isReady: true });
