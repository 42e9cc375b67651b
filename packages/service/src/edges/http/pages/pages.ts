import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { openApiDocument } from '@runyard/contract/openapi/openapi';
import { type ErrorKind, errorCatalogue } from '@runyard/contract/wire/error-catalogue';
import { errorExplanations } from '@runyard/contract/wire/error-explanations';
import { type ErrorCode, errorSlug } from '@runyard/contract/wire/errors';
import type { FastifyInstance } from 'fastify';
import { cachedAnswer } from '../server/cached-answer.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { registerDashboard } from './dashboard.ts';
import { docsPage } from './docs-page.ts';
import { html, htmlPage, prose } from './html.ts';
import { sendNotFound } from './not-found-page.ts';
import { pageHeaders, sendPage } from './send-page.ts';

/** Returns the page for the `type` of a problem; null: no such code. */
function errorPage(slug: string): string | null {
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
function errorListPage(): string {
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

/**
 * Registers the style sheet of the pages that are not the dashboard. It begins with the style sheet of the dashboard, if the dashboard is
 * built.
 */
async function registerAssets(app: FastifyInstance, dashboardSheet: () => string): Promise<void> {
  const own = await readFile(path.join(import.meta.dirname, 'assets/pages.css'), 'utf8');
  const sendSheet = cachedAnswer(dashboardSheet, (sheet) => sheet + own);
  app.get('/assets/pages.css', async (_request, reply) => await sendSheet(reply.type('text/css; charset=utf-8')));
}

/** Registers `/docs`, `/errors`, the dashboard and the files that they load. */
export async function registerPages(
  app: FastifyInstance,
  deps: Pick<ServiceDeps, 'settings' | 'baseUrl' | 'log'>,
): Promise<void> {
  const sendDocs = cachedAnswer(deps.baseUrl, (baseUrl) =>
    docsPage(openApiDocument(baseUrl) as unknown as Parameters<typeof docsPage>[0]),
  );
  app.get('/docs', async (_request, reply) => await sendDocs(pageHeaders(reply)));

  const sendErrors = cachedAnswer(() => '', errorListPage);
  app.get('/errors', async (_request, reply) => await sendErrors(pageHeaders(reply)));

  app.get<{ Params: { slug: string } }>('/errors/:slug', async (request, reply) => {
    const page = errorPage(request.params.slug);
    return page === null ? sendNotFound(request, reply, 'error') : sendPage(reply, page);
  });

  await registerAssets(app, await registerDashboard(app));
}
