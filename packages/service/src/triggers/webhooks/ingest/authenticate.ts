import type { IncomingHttpHeaders } from 'node:http';
import { isSameSecret } from '../schemes/same-secret.ts';
import { hasSignature, verifySignature } from '../schemes/verify-signature.ts';
import type { KnownWebhook } from './directory.ts';

/** Credentials of a sender outside of the body. */
export interface Credentials {
  readonly headers: IncomingHttpHeaders;
  /** Segment of the path after the UID; undefined: there is none. */
  readonly urlToken: string | undefined;
}

/** RFC 6750, 2.1: the name of the scheme is case-insensitive. */
const bearer = /^bearer +([\x21-\x7e]{1,1000}) *$/i;
/** RFC 7617, 2. */
const basic = /^basic +([A-Za-z0-9+/]{1,4000}={0,2}) *$/i;

/** Returns the token of a header Authorization. With Basic it is the password, because many senders know no other form. */
function tokenOf(authorization = ''): string {
  const password = basic.exec(authorization)?.[1];
  if (password === undefined) return bearer.exec(authorization)?.[1] ?? '';
  return Buffer.from(password, 'base64')
    .toString('utf8')
    .replace(/^[^:]*:?/, '');
}

const isOneOf = (given: string, secrets: readonly string[]): boolean =>
  // Compares all of them, so that the duration reveals nothing.
  secrets.map((secret) => isSameSecret(given, secret)).includes(true);

/** Returns whether the sender sent the right token; undefined: the webhook has no token, and the body decides. */
export function checkToken(webhook: KnownWebhook, { headers, urlToken }: Credentials): boolean | undefined {
  switch (webhook.authMode) {
    case 'token': {
      return isOneOf(tokenOf(headers.authorization), webhook.secrets()) && urlToken === undefined;
    }
    case 'url_token':
      return isOneOf(urlToken ?? '', webhook.secrets());
    case 'signature':
      return undefined;
  }
}

/** Returns whether the request has a signature of the scheme, right or wrong. */
export const isSigned = ({ sender }: KnownWebhook, { headers, urlToken }: Credentials): boolean =>
  sender !== null && urlToken === undefined && hasSignature(sender, headers);

/** Returns whether the sender is the one for which the webhook was made. */
export function authenticate(webhook: KnownWebhook, credentials: Credentials, body: Buffer, nowMs: number): boolean {
  const hasToken = checkToken(webhook, credentials);
  if (hasToken !== undefined) return hasToken;
  if (webhook.sender === null || credentials.urlToken !== undefined) return false;
  return verifySignature(webhook.sender, { headers: credentials.headers, body }, webhook.secrets(), nowMs);
}
