import type { SignatureScheme } from './scheme.ts';

/**
 * https://docs.gitlab.com/user/project/integrations/webhooks/#delivery-headers: a header contains the secret token itself. The id of a
 * delivery is `Idempotency-Key`, because it stays the same if GitLab sends the delivery again. GitLab before 17.4 does not send this
 * header. Only then is the id the UUID of the event, which can change in a repeated delivery and which several events can share
 * (recursion_detection/uuid.rb of GitLab).
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
