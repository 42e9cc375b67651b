import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { schemes } from '@runyard/contract/signature-schemes/schemes';
import { providerId } from '../schemes/verify-signature.ts';
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
 * Returns the identity of a delivery: the header that the webhook names, the provider's own header, the sender's own header, or
 * the hash of the body, in this order. interface.md, "Ingress rules", 3.
 */
export function identify(webhook: KnownWebhook, headers: IncomingHttpHeaders, body: Buffer): Identity {
  const candidates = [
    webhook.deliveryIdHeader === null ? undefined : headers[webhook.deliveryIdHeader],
    webhook.scheme === null ? undefined : providerId(schemes[webhook.scheme], headers),
    headers['x-service-delivery-id'],
    headers['x-warp-delivery-id'],
  ];
  for (const candidate of candidates) {
    const id = typeof candidate === 'string' ? candidate.trim() : '';
    if (id !== '') return identityOf('header', shown.test(id) ? id : `sha256:${sha256(id).toString('hex')}`);
  }
  return identityOf('body', `sha256:${sha256(body).toString('hex')}`);
}

/** Returns the provider's name of the event from its header; null: its deliveries have no such header. */
export function eventOf({ scheme }: KnownWebhook, headers: IncomingHttpHeaders): string | null {
  const header = scheme === null ? undefined : schemes[scheme].eventHeader;
  const event = header === undefined ? undefined : headers[header];
  return typeof event === 'string' && /^[a-z_]{1,100}$/.test(event) ? event : null;
}

/** Returns the identity of a replay, which no other delivery has. */
export const identityOfReplay = (deliveryId: string): Identity => identityOf('replay', `replay:${deliveryId}`);
