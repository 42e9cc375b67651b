import type { IncomingHttpHeaders } from 'node:http';
import type { KnownWebhook } from './directory.ts';

/** Headers by their names in lower case. */
export type EventHeaders = Readonly<Record<string, string>>;

/** Values that are stored: printable ASCII, and short, so that all headers of a delivery stay small compared with its payload. */
const storable = /^[\x20-\x7e]{1,200}$/;

/**
 * Returns the headers of a delivery that identify its event. They are listed by name, so that no credential or signature of a sender is
 * stored.
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
