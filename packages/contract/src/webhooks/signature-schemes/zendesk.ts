import { fiveMinutes, type SignatureScheme } from './scheme.ts';

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
