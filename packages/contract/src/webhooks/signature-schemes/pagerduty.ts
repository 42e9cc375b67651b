import type { SignatureScheme } from './scheme.ts';

/**
 * https://developer.pagerduty.com/docs/verifying-webhook-signatures: the header is `v1=…,v1=…`. While secrets are rotated, it has one
 * signature for each secret.
 */
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
