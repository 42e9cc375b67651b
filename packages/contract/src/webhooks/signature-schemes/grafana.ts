import type { SignatureScheme } from './scheme.ts';

/** https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/#hmac-signature */
export const grafana: SignatureScheme = {
  headers: [{ signature: 'x-grafana-alerting-signature' }],
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: '',
  signed: ['{body}'],
  key: 'text',
};
