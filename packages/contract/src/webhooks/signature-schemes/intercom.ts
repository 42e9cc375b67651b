import type { SignatureScheme } from './scheme.ts';

/** https://developers.intercom.com/docs/webhooks/setting-up-webhooks: HMAC-SHA1 with the client secret of the app. */
export const intercom: SignatureScheme = {
  headers: [{ signature: 'x-hub-signature' }],
  algorithm: 'sha1',
  encoding: 'hex',
  prefix: 'sha1=',
  signed: ['{body}'],
  key: 'text',
  idMember: 'id',
};
