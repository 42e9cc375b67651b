import type { SignatureScheme } from './scheme.ts';

/**
 * https://docs.gitlab.com/user/project/integrations/webhooks/#delivery-headers: a header contains the secret token itself. The id of a
 * delivery is `Idempotency-Key`, because it stays the same if GitLab sends the delivery again. GitLab before 17.4 does not send this
 * header. For these versions, the id is the UUID of the event. This UUID can change in a repeated delivery, and several events can
 * share it (recursion_detection/uuid.rb of GitLab).
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
