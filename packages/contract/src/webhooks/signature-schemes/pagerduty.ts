import type { SignatureScheme } from './scheme.ts';

/** https://developer.pagerduty.com/docs/verifying-webhook-signatures: `v1=…,v1=…`, one per secret during a rotation. */
export const pagerduty: SignatureScheme = {
  headers: [{ signature: 'x-pagerduty-signature' }],
  algorithm: 'sha256',
  encoding: 'hex',
  separator: ',',
  prefix: 'v1=',
  signed: ['{body}'],
  key: 'text',
  idMember: 'event.id',
  otherHeaders: ['x-webhook-id', 'x-webhook-subscription'],
};
