import { fiveMinutes, type SignatureScheme } from './scheme.ts';

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
