import type { FastifyReply, FastifyRequest } from 'fastify';
import { notFound } from '../../../platform/serving/refusal.ts';
import { html, htmlPage } from './html.ts';
import { sendPage } from './send-page.ts';

const hints = {
  error: {
    title: 'No such error',
    body: html`<p>There is no error with this name. See the <a href="/errors">list of all errors</a>.</p>`,
  },
  page: {
    title: 'No such page',
    body: html`<p>There is nothing at this address. A run's page is <code>/runs/</code> and the whole id of the run; <code>bin/runyard open RUN</code> opens it.</p>`,
  },
} as const;

/** Returns whether the client is a browser that shows a page. API clients send another type or `*`+`/*`. */
const acceptsHtml = ({ headers }: FastifyRequest): boolean => /\btext\/html\b/i.test(headers.accept ?? '');

/** Paths that only programs request. Some HTTP libraries, such as Java's, ask for HTML by default, but their programs expect a problem
 * document. */
const programPath = /^\/+(?:api|webhooks)(?:[/?]|$)/i;

/** If a browser asked for an address that does not exist, sends a page with status 404 and returns true. Otherwise returns false. */
export function showNotFound(request: FastifyRequest, reply: FastifyReply): boolean {
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  if (!isRead || !acceptsHtml(request) || programPath.test(request.url)) return false;
  sendNotFound(request, reply, 'page');
  return true;
}

/** Sends a page that says what to do, with status 404. @throws Refusal for a client that does not ask for HTML */
export function sendNotFound(request: FastifyRequest, reply: FastifyReply, what: keyof typeof hints): FastifyReply {
  if (!acceptsHtml(request)) throw notFound(what);
  const { title, body } = hints[what];
  const page = htmlPage({
    title,
    body: html`<main class="doc" id="main"><h1>${title}</h1>${body}</main>`,
  });
  return sendPage(reply.code(404).header('vary', 'accept'), page);
}
