import { fiveMinutes, type SignatureScheme } from './scheme.ts';

/**
 * https://docs.slack.dev/authentication/verifying-requests-from-slack, and events/url_verification for the handshake. Slack sends
 * interactions of users as a form (interactivity/handling-user-interaction).
 */
export const slack: SignatureScheme = {
  headers: [{ signature: 'x-slack-signature', timestamp: 'x-slack-request-timestamp' }],
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: 'v0=',
  signed: ['v0:', '{timestamp}', ':', '{body}'],
  key: 'text',
  idMember: 'event_id',
  formField: 'payload',
  maxAgeSeconds: fiveMinutes,
  otherHeaders: ['x-slack-retry-num', 'x-slack-retry-reason'],
  handshake: { when: ['type', 'url_verification'], value: 'challenge', answer: { challenge: '{value}' } },
};
