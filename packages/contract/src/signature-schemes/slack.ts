import { fiveMinutes, type SignatureScheme } from './scheme.ts';

/** https://docs.slack.dev/authentication/verifying-requests-from-slack, and events/url_verification for the handshake. */
export const slack: SignatureScheme = {
  headers: [{ signature: 'x-slack-signature', timestamp: 'x-slack-request-timestamp' }],
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: 'v0=',
  signed: ['v0:', '{timestamp}', ':', '{body}'],
  key: 'text',
  idMember: 'event_id',
  maxAgeSeconds: fiveMinutes,
  otherHeaders: ['x-slack-retry-num', 'x-slack-retry-reason'],
  handshake: { when: ['type', 'url_verification'], value: 'challenge', answer: { challenge: '{value}' } },
};
