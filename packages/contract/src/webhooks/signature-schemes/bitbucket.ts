import type { SignatureScheme } from './scheme.ts';

/** https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/#Secure-webhooks, and event-payloads for the headers. */
export const bitbucket: SignatureScheme = {
  headers: [{ signature: 'x-hub-signature', id: 'x-request-uuid' }],
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: 'sha256=',
  signed: ['{body}'],
  key: 'text',
  eventHeader: 'x-event-key',
  otherHeaders: ['x-hook-uuid', 'x-attempt-number'],
};
