import { isUtf8 } from 'node:buffer';

/** Any JSON value, or why the bytes are not JSON. */
export type ParsedPayload =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly why: string };

/**
 * Parses the body of a delivery: any JSON value in UTF-8 (RFC 8259, 8.1) without a byte order mark. The parser of V8 does not recurse,
 * so only the size of the body limits the nesting.
 */
export function parsePayload(body: Buffer): ParsedPayload {
  if (body.length === 0) return { ok: false, why: 'the body is empty' };
  if (!isUtf8(body)) return { ok: false, why: 'the body is not valid UTF-8' };
  try {
    return { ok: true, value: JSON.parse(body.toString('utf8')) };
  } catch {
    return { ok: false, why: 'the body is not valid JSON' };
  }
}
