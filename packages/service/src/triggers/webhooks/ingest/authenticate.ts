import type { IncomingHttpHeaders } from 'node:http';
import { schemes } from '@runyard/contract/signature-schemes/schemes';
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

const isOneOf = (given: string, secrets: readonly string[]): boolean =>
  // Compares all of them, so that the duration reveals nothing.
  secrets.map((secret) => isSameSecret(given, secret)).includes(true);

/** Returns whether the sender sent the right token; undefined: the webhook has no token, and the body decides. */
export function checkToken(webhook: KnownWebhook, { headers, urlToken }: Credentials): boolean | undefined {
  switch (webhook.authMode) {
    case 'token': {
      const given = bearer.exec(headers.authorization ?? '')?.[1] ?? '';
      return isOneOf(given, webhook.secrets()) && urlToken === undefined;
    }
    case 'url_token':
      return isOneOf(urlToken ?? '', webhook.secrets());
    case 'signature':
      return undefined;
  }
}

/** Returns whether the request has a signature of the scheme, right or wrong. */
export const isSigned = ({ scheme }: KnownWebhook, { headers, urlToken }: Credentials): boolean =>
  scheme !== null && urlToken === undefined && hasSignature(schemes[scheme], headers);

/** Returns whether the sender is the one for which the webhook was made. */
export function authenticate(webhook: KnownWebhook, credentials: Credentials, body: Buffer, nowMs: number): boolean {
  const hasToken = checkToken(webhook, credentials);
  if (hasToken !== undefined) return hasToken;
  if (webhook.scheme === null || credentials.urlToken !== undefined) return false;
  return verifySignature(schemes[webhook.scheme], { headers: credentials.headers, body }, webhook.secrets(), nowMs);
}
