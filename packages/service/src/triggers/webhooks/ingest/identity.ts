import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { memberText } from '../schemes/member-at.ts';
import { hashOfSigned, providerId } from '../schemes/verify-signature.ts';
import type { KnownWebhook } from './directory.ts';

/** Two deliveries of a webhook with the same identity count as one. */
export interface Identity {
  /** The identity in the form of the log. */
  readonly text: string;
  /** 32 bytes. */
  readonly hash: Buffer;
}

/** Ids of senders that the log can show unchanged. For others it shows the hash. */
const shown = /^[\x21-\x7e]{1,200}$/;

const sha256 = (data: string | Buffer): Buffer => hash('sha256', data, 'buffer');

const identityOf = (kind: 'header' | 'body' | 'replay', text: string): Identity => ({
  text,
  hash: sha256(`${kind}\n${text}`),
});

/**
 * Returns the identity of a delivery: the header that the webhook names, the provider's own header, the sender's own header, a member of the
 * body that the webhook or its scheme names, or the hash of the body as it was received, in this order. `value`: that of its JSON.
 * interface.md, "Ingress rules", 3.
 */
export function identify(webhook: KnownWebhook, headers: IncomingHttpHeaders, body: Buffer, value?: unknown): Identity {
  const { deliveryIdHeader, sender, rules } = webhook;
  const member = rules.delivery_id_path ?? sender?.idMember;
  const candidates = [
    deliveryIdHeader === null ? undefined : headers[deliveryIdHeader],
    sender === null ? undefined : providerId(sender, headers),
    headers['x-service-delivery-id'],
    headers['x-warp-delivery-id'],
    member === undefined ? undefined : memberText(value, member),
  ];
  for (const candidate of candidates) {
    const id = typeof candidate === 'string' ? candidate.trim() : '';
    if (id !== '') return identityOf('header', shown.test(id) ? id : `sha256:${sha256(id).toString('hex')}`);
  }
  return identityOf('body', `sha256:${sha256(body).toString('hex')}`);
}

/**
 * Returns the hash of the signed bytes of a delivery, where the signature does not cover its id: whoever has recorded such a delivery can send
 * it again under another one. Null: it covers the id, or nothing is signed.
 */
export function signedHashOf(
  { authMode, sender }: KnownWebhook,
  headers: IncomingHttpHeaders,
  body: Buffer,
): Buffer | null {
  if (authMode !== 'signature' || sender === null || sender.algorithm === 'plain') return null;
  return sender.signed.includes('{id}') ? null : hashOfSigned(sender, { headers, body });
}

/** Names of events. The log and the envelope of a run show them. */
const eventName = /^[A-Za-z0-9._:/-](?:[ A-Za-z0-9._:/-]{0,98}[A-Za-z0-9._:/-])?$/;

/** Returns the name of the event from the header that the webhook or its scheme names; null: there is none. */
export function eventOf({ rules, sender }: KnownWebhook, headers: IncomingHttpHeaders): string | null {
  const header = rules.event_header ?? sender?.eventHeader;
  const name = header === undefined ? undefined : headers[header];
  return typeof name === 'string' && eventName.test(name) ? name : null;
}

/** Returns the identity of a replay, which no other delivery has. */
export const identityOfReplay = (deliveryId: string): Identity => identityOf('replay', `replay:${deliveryId}`);
