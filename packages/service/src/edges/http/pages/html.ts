/** Markup that is safe to insert into a page unchanged. */
export interface Html {
  readonly markup: string;
}

type Part = Html | string | number | undefined | readonly Html[];

const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, (char) => escapes[char] ?? char);

const markupOf = (part: Part): string => {
  if (part === undefined) return '';
  if (typeof part === 'string' || typeof part === 'number') return escapeHtml(String(part));
  return 'markup' in part ? part.markup : part.map(({ markup }) => markup).join('');
};

/** Builds markup from a template: its values are escaped, unless they are markup themselves. */
export function html(texts: TemplateStringsArray, ...parts: Part[]): Html {
  return { markup: texts.map((text, index) => text + markupOf(parts[index])).join('') };
}

/** A sentence of the contract: text between backticks is code. */
export function prose(text: string): Html {
  return {
    markup: text
      .split('`')
      .map((part, index) => (index % 2 === 1 ? `<code>${escapeHtml(part)}</code>` : escapeHtml(part)))
      .join(''),
  };
}

/** Returns a whole document. `modules` are paths of our own script files: the page's policy forbids inline scripts. */
export function htmlPage(page: { title: string; body: Html; modules?: readonly string[] }): string {
  const scripts = (page.modules ?? []).map((source) => html`<script src="${source}" type="module"></script>`);
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${page.title} · Runyard</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/assets/pages.css">
${scripts}
</head>
<body>
${page.body}
</body>
</html>
`.markup;
}
