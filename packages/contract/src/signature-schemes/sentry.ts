import type { SignatureScheme } from './scheme.ts';

/** https://docs.sentry.io/organization/integrations/integration-platform/webhooks/: HMAC of the body with the client secret. */
export const sentry: SignatureScheme = {
  headers: [{ signature: 'sentry-hook-signature', id: 'request-id' }],
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: '',
  signed: ['{body}'],
  key: 'text',
  otherHeaders: ['sentry-hook-resource', 'sentry-hook-timestamp'],
};
