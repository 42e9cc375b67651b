/** Requests with which providers check the URL of a webhook. The schemes describe them. */
import { createHmac } from 'node:crypto';
import { memberAt } from '../schemes/member-at.ts';
import type { KnownWebhook } from './directory.ts';

/** The answer that a provider expects, or what a person has to do. */
export type HandshakeAnswer =
  | { readonly kind: 'answer'; readonly type: 'application/json' | 'text/plain'; readonly text: string }
  | { readonly kind: 'confirm'; readonly reason: string };

/** Longest value that an answer repeats. */
const maxLength = 4_000;

/** Returns the value that the query of a handshake has; undefined: the request is no such handshake. */
export function queryOfHandshake({ sender }: KnownWebhook, query: string): { name: string; value: string } | undefined {
  const handshake = sender?.handshake;
  if (handshake === undefined || !('query' in handshake)) return undefined;
  const value = new URLSearchParams(query).get(handshake.query);
  return value === null || value.length > maxLength ? undefined : { name: handshake.query, value };
}

/** Returns how a handshake is answered; undefined: the body is a delivery. The HMAC is made with the current secret. */
export function answerHandshake({ sender, secrets }: KnownWebhook, body: unknown): HandshakeAnswer | undefined {
  const handshake = sender?.handshake;
  if (handshake === undefined || 'query' in handshake) return undefined;
  const [path, expected] = handshake.when;
  if (memberAt(body, path) !== expected) return undefined;
  if ('confirm' in handshake) return { kind: 'confirm', reason: handshake.confirm };
  const value = memberAt(body, handshake.value);
  if (typeof value !== 'string' || value.length > maxLength) return undefined;
  const hmac = createHmac('sha256', secrets()[0] ?? '')
    .update(value)
    .digest('hex');
  const answer = Object.entries(handshake.answer).map(([name, text]) => [
    name,
    text.replace(/\{value\}|\{hmac\}/g, (part) => (part === '{hmac}' ? hmac : value)),
  ]);
  return { kind: 'answer', type: 'application/json', text: JSON.stringify(Object.fromEntries(answer)) };
}
