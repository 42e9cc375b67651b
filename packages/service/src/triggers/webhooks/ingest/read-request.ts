/** Reads a request of a sender: the payload, the name of the event, the identity of the delivery and the headers to store. */
import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { maxWebhookBytes } from '@runyard/contract/limits';
import type { SignatureScheme } from '@runyard/contract/webhooks/signature-schemes/scheme';
import { hashOfSigned, memberText, providerId } from './authenticate.ts';
import type { KnownWebhook } from './directory.ts';

/** Any JSON value, or why the bytes are not JSON. */
type ParsedPayload = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly why: string };

/**
 * Parses the JSON of a delivery, which may be any value in UTF-8 (RFC 8259, 8.1). The nesting needs no limit, because the parser of V8
 * does not recurse. `sender`: the scheme, which may name members that contain JSON as text. Their values are parsed too.
 */
export function parsePayload(body: Buffer, sender: SignatureScheme | null = null): ParsedPayload {
  if (body.length === 0) return { ok: false, why: 'the body is empty' };
  if (!isUtf8(body)) return { ok: false, why: 'the body is not valid UTF-8' };
  const value = parseText(body.toString('utf8'));
  if (value === undefined) return { ok: false, why: 'the body is not valid JSON' };
  for (const member of sender?.jsonMembers ?? []) unwrap(value, member);
  return { ok: true, value };
}

/** Returns the value of a JSON text; undefined if it is not JSON. */
function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unwrap(value: unknown, member: string): void {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, member)) return;
  const text: unknown = Reflect.get(value, member);
  const inner = typeof text === 'string' ? parseText(text) : undefined;
  if (typeof inner === 'object' && inner !== null) Reflect.set(value, member, inner);
}

/** The JSON of a delivery: the bytes to store, and the parsed value. */
type ReadPayload =
  | { readonly kind: 'json'; readonly json: Buffer; readonly value: unknown }
  | { readonly kind: 'not_json'; readonly why: string }
  /** The decompressed body exceeds the limit. */
  | { readonly kind: 'too_large' };

interface Received {
  readonly headers: IncomingHttpHeaders;
  /** The bytes as they arrived. */
  readonly body: Buffer;
  readonly sender: SignatureScheme | null;
}

const unzip = promisify(gunzip);
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Reads the JSON in a body. The body may be compressed or begin with a byte order mark. If the scheme names a form field, the JSON may
 * be in this field of a form.
 */
export async function readPayload({ headers, body, sender }: Received): Promise<ReadPayload> {
  const decoded = await decode(headers['content-encoding'], body);
  if (!Buffer.isBuffer(decoded)) return decoded;
  const type = (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const text = decoded.subarray(0, 3).equals(byteOrderMark) ? decoded.subarray(3) : decoded;
  const field = type === formType && sender?.formField !== undefined ? fieldOf(text, sender.formField) : undefined;
  const json = field ?? text;
  const parsed = parsePayload(json, sender);
  return parsed.ok
    ? { kind: 'json', json, value: parsed.value }
    : { kind: 'not_json', why: `${parsed.why}${adviceFor(type)}` };
}

const formType = 'application/x-www-form-urlencoded';

function fieldOf(form: Buffer, name: string): Buffer | undefined {
  const value = new URLSearchParams(form.toString('utf8')).get(name);
  return value === null ? undefined : Buffer.from(value);
}

/** Decompresses a body. The result must not be larger than the largest allowed body. */
async function decode(
  encoding: string | undefined,
  body: Buffer,
): Promise<Buffer | Exclude<ReadPayload, { kind: 'json' }>> {
  const name = (encoding ?? '').trim().toLowerCase();
  if (name === '' || name === 'identity') return body;
  if (name !== 'gzip' && name !== 'x-gzip')
    return {
      kind: 'not_json',
      why: 'the body has a Content-Encoding other than gzip; choose gzip or none at the sender',
    };
  try {
    return await unzip(body, { maxOutputLength: maxWebhookBytes });
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE') return { kind: 'too_large' };
    return { kind: 'not_json', why: 'the body has the Content-Encoding gzip, and is not gzip' };
  }
}

/** Returns advice for the settings of the sender if the content type of the body is not JSON; otherwise an empty text. */
function adviceFor(type: string): string {
  const isJson = type === '' || type === 'application/json' || type.endsWith('+json') || type.startsWith('text/plain');
  if (isJson || !/^[a-z0-9.+/-]{1,100}$/.test(type)) return '';
  return `, but ${type}; choose JSON (the content type application/json) in the settings of the sender`;
}

/** Identifies a delivery. If a webhook gets two deliveries with the same identity, the second is a duplicate. */
export interface Identity {
  /** The identity as the log shows it. */
  readonly text: string;
  /** 32 bytes. */
  readonly hash: Buffer;
}

/** Matches the ids of senders that the log shows unchanged. The log shows other ids as a hash. */
const visibleText = /^[\x21-\x7e]{1,200}$/;

const sha256 = (data: string | Buffer): Buffer => hash('sha256', data, 'buffer');

const identityOf = (kind: 'header' | 'body' | 'replay', text: string): Identity => ({
  text,
  hash: sha256(`${kind}\n${text}`),
});

/**
 * Returns the identity of a delivery (contract, "Ingress rules", 3). It is the first of these values that exists: the header in the
 * settings of the webhook; the header of the provider; the two general headers for delivery ids; the member of the body that the webhook
 * or its scheme names; the hash of the received body. `value`: the parsed body.
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
    if (id !== '') return identityOf('header', visibleText.test(id) ? id : `sha256:${sha256(id).toString('hex')}`);
  }
  return identityOf('body', `sha256:${sha256(body).toString('hex')}`);
}

/**
 * Returns the hash of the signed bytes of a delivery if the signature does not cover the id. With this hash, a recorded delivery that
 * an attacker sends again under another id is found to be a duplicate. Returns null if the signature covers the id, or nothing is
 * signed.
 */
export function signedHashOf(
  { authMode, sender }: KnownWebhook,
  headers: IncomingHttpHeaders,
  body: Buffer,
): Buffer | null {
  if (authMode !== 'signature' || sender === null || sender.algorithm === 'plain') return null;
  return sender.signed.includes('{id}') ? null : hashOfSigned(sender, { headers, body });
}

/** Matches the names of events that are accepted, because the log and the prompts of runs show them. */
const eventName = /^[A-Za-z0-9._:/-](?:[ A-Za-z0-9._:/-]{0,98}[A-Za-z0-9._:/-])?$/;

/** Returns the name of the event in the header that the webhook or its scheme names; null if there is no name. */
export function eventOf({ rules, sender }: KnownWebhook, headers: IncomingHttpHeaders): string | null {
  const header = rules.event_header ?? sender?.eventHeader;
  const name = header === undefined ? undefined : headers[header];
  return typeof name === 'string' && eventName.test(name) ? name : null;
}

/** Returns the identity of a replay. No other delivery has this identity. */
export const identityOfReplay = (deliveryId: string): Identity => identityOf('replay', `replay:${deliveryId}`);

/** Headers by their names in lower case. */
export type EventHeaders = Readonly<Record<string, string>>;

/** Matches header values that may be stored: printable ASCII, and short, so that the stored headers are small compared with the payload. */
const storable = /^[\x20-\x7e]{1,200}$/;

/**
 * Returns the headers of a delivery to store, which identify the delivery and its event. Only the listed headers are stored, so that
 * the log never contains a credential or a signature of a sender.
 */
export function eventHeadersOf(
  { sender, rules, deliveryIdHeader }: Pick<KnownWebhook, 'sender' | 'rules' | 'deliveryIdHeader'>,
  headers: IncomingHttpHeaders,
): EventHeaders {
  const names = [
    'content-type',
    'x-service-delivery-id',
    'x-warp-delivery-id',
    deliveryIdHeader,
    rules.event_header,
    sender?.eventHeader,
    ...(sender?.headers ?? []).flatMap(({ id, olderId }) => [id, olderId]),
    ...(sender?.otherHeaders ?? []),
  ];
  const found: Record<string, string> = {};
  for (const name of names) {
    const value = typeof name === 'string' ? headers[name] : undefined;
    if (typeof name === 'string' && typeof value === 'string' && storable.test(value)) found[name] = value;
  }
  return found;
}
