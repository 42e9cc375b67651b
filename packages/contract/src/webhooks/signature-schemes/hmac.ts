import type { HmacSignature } from '../webhook-rules.ts';
import { fiveMinutes, type SignatureScheme } from './scheme.ts';

/** Returns the scheme for a webhook with the scheme `hmac`, in which a person has described how the sender signs. */
export function hmacScheme(signature: HmacSignature): SignatureScheme {
  const { header, id_header: id, timestamp_header: timestamp, signed = '{body}' } = signature;
  const names = { signature: header, ...(id ? { id } : {}), ...(timestamp ? { timestamp } : {}) };
  return {
    headers: [
      Object.fromEntries(Object.entries(names).map(([key, name]) => [key, name.toLowerCase()])) as typeof names,
    ],
    algorithm: signature.algorithm ?? 'sha256',
    encoding: signature.encoding ?? 'hex',
    prefix: signature.prefix ?? '',
    signed: signed.split(/(\{(?:id|timestamp|body)\})/).filter((part) => part !== ''),
    key: 'text',
    ...(timestamp ? { maxAgeSeconds: signature.max_age_seconds ?? fiveMinutes } : {}),
  };
}
