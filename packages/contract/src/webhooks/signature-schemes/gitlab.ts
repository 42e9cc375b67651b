import type { SignatureScheme } from './scheme.ts';

/**
 * https://docs.gitlab.com/user/project/integrations/webhooks/#delivery-headers: the secret token itself. `Idempotency-Key` is the same when
 * a delivery is sent again. The UUID of the event changes, and several events can share it (recursion_detection/uuid.rb of GitLab), so it
 * is used only for GitLab before 17.4, which does not send the key.
 */
export const gitlab: SignatureScheme = {
  headers: [{ signature: 'x-gitlab-token', id: 'idempotency-key', olderId: 'x-gitlab-event-uuid' }],
  algorithm: 'plain',
  encoding: 'hex',
  prefix: '',
  signed: [],
  key: 'text',
  eventHeader: 'x-gitlab-event',
  otherHeaders: ['x-gitlab-webhook-uuid', 'x-gitlab-instance'],
};
