import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { openApiDocument } from '@runyard/contract/openapi';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { isUuid } from '../../store/database/uuid.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { keptAnswer } from '../server/kept-answer.ts';
import { notFound } from '../server/problem.ts';
import { docsPage } from './docs-page.ts';
import { errorListPage, errorPage } from './error-page.ts';
import { runPage } from './run-page.ts';

/** Nothing inline, nothing from elsewhere, in no frame. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

function pageHeaders(reply: FastifyReply): FastifyReply {
  return reply
    .type('text/html; charset=utf-8')
    .header('content-security-policy', policy)
    .header('referrer-policy', 'no-referrer')
    .header('x-frame-options', 'DENY')
    .header('cache-control', 'no-cache');
}

const sendPage = (reply: FastifyReply, page: string): FastifyReply => pageHeaders(reply).send(page);

const assets = [
  { file: 'pages.css', type: 'text/css; charset=utf-8' },
  { file: 'run-page.js', type: 'text/javascript; charset=utf-8' },
];

/** Registers `/docs`, `/errors`, the page of a run and what they load. */
export async function registerPages(app: FastifyInstance, deps: ServiceDeps): Promise<void> {
  app.get('/', async (_request, reply) => reply.code(302).header('location', '/docs').send());

  const sendDocs = keptAnswer(deps.baseUrl, (baseUrl) =>
    docsPage(openApiDocument(baseUrl) as unknown as Parameters<typeof docsPage>[0]),
  );
  app.get('/docs', async (_request, reply) => await sendDocs(pageHeaders(reply)));

  const sendErrors = keptAnswer(() => '', errorListPage);
  app.get('/errors', async (_request, reply) => await sendErrors(pageHeaders(reply)));

  app.get<{ Params: { slug: string } }>('/errors/:slug', async (request, reply) => {
    const page = errorPage(request.params.slug);
    if (page === null) throw notFound('error');
    return sendPage(reply, page);
  });

  app.get<{ Params: { runId: string } }>('/runs/:runId', async (request, reply) => {
    if (!isUuid(request.params.runId)) throw notFound('run');
    return sendPage(reply, runPage());
  });

  for (const { file, type } of assets) {
    const bytes = await readFile(path.join(import.meta.dirname, 'assets', file));
    const tag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`;
    app.get(`/assets/${file}`, async (request, reply) => {
      reply.header('etag', tag).header('cache-control', 'no-cache');
      if (request.headers['if-none-match'] === tag) return reply.code(304).send();
      return reply.type(type).send(bytes);
    });
  }
}
