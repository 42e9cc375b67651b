import type { SignatureScheme } from './scheme.ts';
import { signatureOf } from './signature.ts';

/** A delivery to sign. */
export interface Unsigned {
  /** Headers that the delivery already has, in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The id that a delivery without an id gets, if the scheme signs the id. */
  readonly id: string;
  readonly body: Uint8Array;
}

/** Signs a delivery in the way of the scheme, at the time `nowMs` in milliseconds. Returns the headers to add to the delivery. */
export function signHeaders(
  scheme: SignatureScheme,
  secret: string,
  { headers, id: newId, body }: Unsigned,
  nowMs: number,
): Record<string, string> {
  const names = scheme.headers.find(({ id }) => id !== undefined && id in headers) ?? scheme.headers[0];
  if (names === undefined) return {};
  const id = names.id === undefined ? undefined : (headers[names.id] ?? newId);
  const timestamp = String(Math.floor(nowMs / 1000));
  const signature = `${scheme.prefix}${signatureOf(scheme, secret, { id, timestamp, body })}`;
  const time = scheme.timestampPrefix === undefined ? [] : [`${scheme.timestampPrefix}${timestamp}`];
  return {
    ...(names.id === undefined || id === undefined ? {} : { [names.id]: id }),
    ...(names.timestamp === undefined ? {} : { [names.timestamp]: timestamp }),
    [names.signature]: [...time, signature].join(scheme.separator),
  };
}
