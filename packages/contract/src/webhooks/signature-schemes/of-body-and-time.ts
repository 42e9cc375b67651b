/** The schemes of senders whose signature covers the body and the time in a header. */
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

/** https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md; Svix uses its own header names. */
export const standardWebhooks: SignatureScheme = {
  headers: [
    { signature: 'webhook-signature', timestamp: 'webhook-timestamp', id: 'webhook-id' },
    { signature: 'svix-signature', timestamp: 'svix-timestamp', id: 'svix-id' },
  ],
  algorithm: 'sha256',
  encoding: 'base64',
  separator: ' ',
  prefix: 'v1,',
  signed: ['{id}', '.', '{timestamp}', '.', '{body}'],
  key: 'whsec',
  maxAgeSeconds: fiveMinutes,
};

/**
 * https://docs.stripe.com/webhooks#verify-manually: the header is `t=…,v1=…`. While secrets are rotated, it has several v1. The text of the
 * secret itself is the key.
 */
export const stripe: SignatureScheme = {
  headers: [{ signature: 'stripe-signature' }],
  algorithm: 'sha256',
  encoding: 'hex',
  separator: ',',
  prefix: 'v1=',
  timestampPrefix: 't=',
  signed: ['{timestamp}', '.', '{body}'],
  key: 'text',
  idMember: 'id',
  maxAgeSeconds: fiveMinutes,
};

/**
 * https://developer.zendesk.com/documentation/webhooks/verifying/: the signed text is the time in RFC 3339, directly followed by the body.
 */
export const zendesk: SignatureScheme = {
  headers: [
    {
      signature: 'x-zendesk-webhook-signature',
      timestamp: 'x-zendesk-webhook-signature-timestamp',
      id: 'x-zendesk-webhook-invocation-id',
    },
  ],
  algorithm: 'sha256',
  encoding: 'base64',
  prefix: '',
  signed: ['{timestamp}', '{body}'],
  key: 'text',
  maxAgeSeconds: fiveMinutes,
  otherHeaders: ['x-zendesk-account-id', 'x-zendesk-webhook-id'],
};

/** https://developers.zoom.us/docs/api/webhooks/#verify-webhook-events, and #validate-your-webhook-endpoint for the handshake. */
export const zoom: SignatureScheme = {
  headers: [{ signature: 'x-zm-signature', timestamp: 'x-zm-request-timestamp' }],
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: 'v0=',
  signed: ['v0:', '{timestamp}', ':', '{body}'],
  key: 'text',
  maxAgeSeconds: fiveMinutes,
  handshake: {
    when: ['event', 'endpoint.url_validation'],
    value: 'payload.plainToken',
    answer: { plainToken: '{value}', encryptedToken: '{hmac}' },
  },
};
