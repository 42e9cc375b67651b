import { fiveMinutes, type SignatureScheme } from './scheme.ts';

/**
 * https://docs.stripe.com/webhooks#verify-manually: the header is `t=…,v1=…`. While secrets are rotated, it has several v1. The text of the
 * secret itself is the key.
 */
export const stripe: SignatureScheme = {
  headers: [{ signature: 'stripe-signature' }],
  algorithm: 'sha256',
  encoding: 'hex',
  separator: ',',
  prefix: 'v1=',
  timestampPrefix: 't=',
  signed: ['{timestamp}', '.', '{body}'],
  key: 'text',
  idMember: 'id',
  maxAgeSeconds: fiveMinutes,
};
