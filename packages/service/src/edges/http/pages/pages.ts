import { openApiDocument } from '@runyard/contract/openapi/openapi';
import type { FastifyInstance } from 'fastify';
import { cachedAnswer } from '../server/cached-answer.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { registerAssets } from './assets.ts';
import { registerDashboard } from './dashboard.ts';
import { docsPage } from './docs-page.ts';
import { errorListPage, errorPage } from './error-page.ts';
import { sendNotFound } from './not-found-page.ts';
import { pageHeaders, sendPage } from './send-page.ts';

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
