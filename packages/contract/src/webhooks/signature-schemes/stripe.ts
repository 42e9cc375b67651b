import { fiveMinutes, type SignatureScheme } from './scheme.ts';

/** https://docs.stripe.com/webhooks#verify-manually: `t=…,v1=…`; during a rotation there are several v1. The secret is not decoded. */
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
