import type { SignatureScheme } from './scheme.ts';

/** https://docs.gitlab.com/user/project/integrations/webhooks/#delivery-headers: the secret token itself. */
export const gitlab: SignatureScheme = {
  headers: [{ signature: 'x-gitlab-token', id: 'x-gitlab-event-uuid' }],
  algorithm: 'plain',
  encoding: 'hex',
  prefix: '',
  signed: [],
  key: 'text',
  otherHeaders: ['x-gitlab-event', 'x-gitlab-webhook-uuid', 'x-gitlab-instance', 'idempotency-key'],
};
