import { fiveMinutes, type SignatureScheme } from './scheme.ts';

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
