import { fiveMinutes, type SignatureScheme } from './scheme.ts';

/** https://linear.app/developers/webhooks#securing-webhooks: the time is in the body, and the signature covers the body. */
export const linear: SignatureScheme = {
  headers: [{ signature: 'linear-signature', id: 'linear-delivery' }],
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: '',
  timestampMember: 'webhookTimestamp',
  signed: ['{body}'],
  key: 'text',
  maxAgeSeconds: fiveMinutes,
  eventHeader: 'linear-event',
  eventMember: 'type',
};
