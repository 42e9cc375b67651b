import type { SignatureScheme } from './scheme.ts';

/** https://developer.atlassian.com/cloud/jira/platform/webhooks/#secure-admin-webhooks; the identifier stays the same in retries. */
export const jira: SignatureScheme = {
  headers: [{ signature: 'x-hub-signature', id: 'x-atlassian-webhook-identifier' }],
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: 'sha256=',
  signed: ['{body}'],
  key: 'text',
  otherHeaders: ['x-atlassian-webhook-retry', 'x-atlassian-webhook-flow'],
};
