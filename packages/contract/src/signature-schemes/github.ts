import type { SignatureScheme } from './scheme.ts';

/** https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries. GitHub signs neither time nor id. */
export const github: SignatureScheme = {
  headers: [{ signature: 'x-hub-signature-256', id: 'x-github-delivery' }],
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: 'sha256=',
  signed: ['{body}'],
  key: 'text',
  eventHeader: 'x-github-event',
  otherHeaders: ['x-github-hook-id', 'x-github-hook-installation-target-id', 'x-github-hook-installation-target-type'],
};
