import type { FastifyReply } from 'fastify';

/**
 * Content policy of the pages: no inline scripts, nothing from other servers, in no frame. Browsers that know Trusted Types let only
 * DOMPurify create markup from a text.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  // `markdown-worker` is the address of one script.
  'trusted-types dompurify markdown-worker',
].join('; ');

/** Sets the headers of a page. */
export function pageHeaders(reply: FastifyReply): FastifyReply {
  return reply
    .type('text/html; charset=utf-8')
    .header('content-security-policy', policy)
    .header('referrer-policy', 'no-referrer')
    .header('x-frame-options', 'DENY')
    .header('cross-origin-opener-policy', 'same-origin')
    .header('cache-control', 'no-cache');
}

/** Sends a page with the headers of all pages. */
export const sendPage = (reply: FastifyReply, page: string): FastifyReply => pageHeaders(reply).send(page);
