import type { SignatureScheme } from './scheme.ts';

/** https://vercel.com/docs/webhooks/webhooks-api#securing-webhooks: HMAC-SHA1 of the body. */
export const vercel: SignatureScheme = {
  headers: [{ signature: 'x-vercel-signature' }],
  algorithm: 'sha1',
  encoding: 'hex',
  prefix: '',
  signed: ['{body}'],
  key: 'text',
  idMember: 'id',
};
