import { openApiDocument } from '@runyard/contract/openapi/openapi';
import type { FastifyInstance } from 'fastify';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { cachedAnswer } from '../server/cached-answer.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { registerAssets } from './assets.ts';
import { docsPage } from './docs-page.ts';
import { errorListPage, errorPage } from './error-page.ts';
import { sendNotFound } from './not-found-page.ts';
import { runPage } from './run-page.ts';
import { pageHeaders, sendPage } from './send-page.ts';

/** Registers `/docs`, `/errors`, the page of a run and what they load. */
export async function registerPages(app: FastifyInstance, deps: ServiceDeps): Promise<void> {
  app.get('/', async (_request, reply) => reply.code(302).header('location', '/docs').send());

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

  // Without a key the page cannot know whether the run exists, because strangers must not learn that.
  app.get<{ Params: { runId: string } }>('/runs/:runId', async (request, reply) =>
    isUuid(request.params.runId) ? sendPage(reply, runPage()) : sendNotFound(request, reply, 'run'),
  );
  for (const path of ['/runs', '/runs/*']) app.get(path, async (request, reply) => sendNotFound(request, reply, 'run'));

  await registerAssets(app);
}
