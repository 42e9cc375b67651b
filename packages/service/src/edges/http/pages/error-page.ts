import { type ErrorKind, errorCatalogue } from '@runyard/contract/wire/error-catalogue';
import { errorExplanations } from '@runyard/contract/wire/error-explanations';
import { type ErrorCode, errorSlug } from '@runyard/contract/wire/errors';
import { html, htmlPage, prose } from './html.ts';

/** Returns the page for the `type` of a problem; null: no such code. */
export function errorPage(slug: string): string | null {
  const found = (Object.entries(errorCatalogue) as [ErrorCode, ErrorKind][]).find(([code]) => errorSlug(code) === slug);
  if (!found) return null;
  const [code, kind] = found;
  const runState = kind.runState === null ? 'none' : kind.runState;
  return htmlPage({
    title: kind.title,
    body: html`<main class="doc" id="main">
<h1>${kind.title}</h1>
<p>${prose(errorExplanations[code])}</p>
<dl class="kv">
<dt>Code</dt><dd><code>${code}</code></dd>
<dt>HTTP status</dt><dd>${kind.status}</dd>
<dt>Retryable</dt><dd>${kind.retryable ? 'yes' : 'no'}</dd>
<dt>State of a run in which it happens</dt><dd>${runState}</dd>
<dt>Additional members</dt><dd>${kind.extraFields.length > 0 ? kind.extraFields.join(', ') : 'none'}</dd>
</dl>
</main>`,
  });
}

/** Returns the page that lists all codes. */
export function errorListPage(): string {
  const rows = (Object.entries(errorCatalogue) as [ErrorCode, ErrorKind][]).map(
    ([code, kind]) => html`<tr><td><a href="/errors/${errorSlug(code)}"><code>${code}</code></a></td>
<td>${kind.status}</td><td>${kind.retryable ? 'yes' : 'no'}</td><td>${prose(errorExplanations[code])}</td></tr>`,
  );
  return htmlPage({
    title: 'Errors',
    place: '/errors',
    body: html`<main class="doc" id="main"><h1>Errors</h1>
<p>Errors are <code>application/problem+json</code> documents; <code>error_code</code> is one of these.</p>
<div class="scroll"><table><thead><tr><th>Code</th><th>Status</th><th>Retryable</th><th>Meaning</th></tr></thead><tbody>${rows}</tbody></table></div></main>`,
  });
}
