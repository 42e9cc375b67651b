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

/** Builds markup from a template. Escapes the values in the template, unless a value is markup itself. */
export function html(texts: TemplateStringsArray, ...parts: Part[]): Html {
  return { markup: texts.map((text, index) => text + markupOf(parts[index])).join('') };
}

/** Returns the markup of a sentence of the contract. Text between backticks becomes code. */
export function prose(text: string): Html {
  return {
    markup: text
      .split('`')
      .map((part, index) => (index % 2 === 1 ? `<code>${escapeHtml(part)}</code>` : escapeHtml(part)))
      .join(''),
  };
}

/** Pages that the bar of every page links to. */
const places = { '/docs': 'API reference', '/errors': 'Errors' } as const;

/**
 * Returns a whole document with the bar and the look of the dashboard. `place`: address of this page if the bar links to it. The only
 * script sets the colour theme that the person chose in the dashboard.
 */
export function htmlPage(page: { title: string; body: Html; place?: keyof typeof places }): string {
  const links = Object.entries(places).map(
    ([address, label]) =>
      html`<a class="btn ghost" href="${address}"${address === page.place ? html` aria-current="page"` : ''}>${label}</a>`,
  );
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${page.title} · Runyard</title>
<link rel="icon" href="data:,">
<script src="/app/theme.js"></script>
<link rel="stylesheet" href="/assets/pages.css">
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<header class="topbar"><a class="row b" href="/runs"><span class="mark" aria-hidden="true">R</span>Runyard</a>
<nav class="row grow" aria-label="Pages">${links}</nav><a class="btn" href="/runs">Dashboard</a></header>
${page.body}
</body>
</html>
`.markup;
}
