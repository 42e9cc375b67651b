import type { FastifyInstance, FastifyReply } from 'fastify';

declare module 'fastify' {
  interface FastifyInstance {
    /** Origin of RUNYARD_FILES_URL; undefined: files have no separate origin. */
    readonly filesOrigin: string | undefined;
    /** Origin of the pages of GitHub, to which the page of the settings sends a form; undefined: there is no such host. */
    readonly githubOrigin: string | undefined;
  }
}

/**
 * Content policy of the pages: no inline scripts, nothing from other servers, and not in a frame of another page. The only exception: a
 * page may show HTML and SVG files of agents in frames. Browsers that know Trusted Types let only DOMPurify create markup from a text.
 */
const policyWith = ({ filesOrigin, githubOrigin }: Pick<FastifyInstance, 'filesOrigin' | 'githubOrigin'>): string =>
  [
    ...(filesOrigin === undefined ? [] : [`frame-src ${filesOrigin}`]),
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src 'self' data:",
    "base-uri 'none'",
    `form-action 'self'${githubOrigin === undefined ? '' : ` ${githubOrigin}`}`,
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    // `markdown-worker` allows the address of only one script.
    'trusted-types dompurify markdown-worker',
  ].join('; ');

/** Sets the headers of a page. */
export function pageHeaders(reply: FastifyReply): FastifyReply {
  return reply
    .type('text/html; charset=utf-8')
    .header('content-security-policy', policyWith(reply.server))
    .header('referrer-policy', 'no-referrer')
    .header('x-frame-options', 'DENY')
    .header('cross-origin-opener-policy', 'same-origin')
    .header('cache-control', 'no-cache');
}

/** Sends a page with the headers of all pages. */
export const sendPage = (reply: FastifyReply, page: string): FastifyReply => pageHeaders(reply).send(page);
