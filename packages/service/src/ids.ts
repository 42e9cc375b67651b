import { randomUUIDv7 } from 'node:crypto';

/** A new UUIDv7 (RFC 9562): sorts by the millisecond it was made in. */
export function newId(): string {
  return randomUUIDv7();
}
