import type { SignatureScheme } from './scheme.ts';

/** https://docs.sentry.io/organization/integrations/integration-platform/webhooks/: HMAC of the body with the client secret. */
export const sentry: SignatureScheme = {
  headers: [{ signature: 'sentry-hook-signature', id: 'request-id' }],
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: '',
  signed: ['{body}'],
  key: 'text',
  eventHeader: 'sentry-hook-resource',
  eventMembers: {
    event_alert: ['data.event'],
    metric_alert: ['data.metric_alert'],
    error: ['data.error'],
    issue: ['data.issue'],
    installation: ['data.installation'],
  },
  otherHeaders: ['sentry-hook-timestamp'],
};
