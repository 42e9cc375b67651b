/** The path of a request as logs and answers show it. */
import type { FastifyRequest } from 'fastify';

/** Matches the segments before the UID in the URL of a webhook, and usual misspellings of these segments. */
const word = /^(?:api|v1|w|webhooks?|hooks?)$/i;
const webhookWord = /^(?:w|webhooks?|hooks?)$/i;
const uid = /^[A-Za-z0-9]{22}$/;
const containsUid = /(?<![A-Za-z0-9])[A-Za-z0-9]{22}(?![A-Za-z0-9])/;
/** Matches paths of the API that do not begin like the path of a webhook. Clients of these paths put no secret into the path. */
const ofApi = /^\/+api\/+v1\/+(?!(?:w|webhooks?|hooks?|[A-Za-z0-9]{22})(?:[/\\;]|$))/i;

/** Maximum number of times that a path is decoded, because a client may encode a path more than once. */
const maxDecoded = 3;

/** Decodes a path for a comparison. If the path cannot be decoded, decodes only its delimiters. */
function decoded(path: string): string {
  let text = path;
  for (let round = 0; round < maxDecoded && text.includes('%'); round += 1) {
    try {
      text = decodeURIComponent(text);
    } catch {
      // The sequence is not UTF-8: decode at least the delimiters in it.
      text = text.replaceAll(/%(?:2f|5c|3b)/gi, (code) => decodeURIComponent(code));
      break;
    }
  }
  return text;
}

/**
 * Returns the path without text that may be the token of a webhook. This is the text after the UID or, if the path
 * has no valid UID, the text where the UID should be. A slash, a backslash and a semicolon separate segments.
 */
export function withoutToken(path: string): string {
  const plain = decoded(path);
  if (ofApi.test(plain)) return path;
  let visiblePath = '';
  let isWebhook = false;
  // The parts with an odd index are delimiters.
  for (const [index, part] of plain.split(/([/\\;]+)/).entries()) {
    if (index % 2 === 1 || part === '') visiblePath += part;
    else if (uid.test(part)) {
      const rest = plain.slice(visiblePath.length + part.length);
      return /^[/\\;]*$/.test(rest) ? path : `${visiblePath}${part}/{token}`;
    } else if (isWebhook ? !word.test(part) : containsUid.test(part)) return `${visiblePath}{token}`;
    else {
      isWebhook ||= webhookWord.test(part);
      visiblePath += part;
    }
  }
  return path;
}

/** Returns the path of a URL without its query, which may contain a signature. */
export const withoutQuery = (url: string): string => url.split('?', 1)[0] ?? url;

/**
 * Returns the path of a request for logs and answers: without the query, and without the token of a webhook. A sender may misspell its URL,
 * so paths without a route are searched for a token too.
 */
export function shownPath(request: FastifyRequest): string {
  const path = withoutQuery(request.url);
  const route = request.is404 ? undefined : request.routeOptions?.url;
  return route === undefined || route.startsWith('/webhooks/w/') ? withoutToken(path) : path;
}
