import type { HmacSignature, WebhookRules } from '../webhook-rules.ts';
import type { SignatureSchemeName } from '../webhooks.ts';
import {
  bitbucket,
  github,
  gitlab,
  grafana,
  intercom,
  jira,
  linear,
  pagerduty,
  sentry,
  shopify,
  vercel,
} from './of-body.ts';
import { slack, standardWebhooks, stripe, zendesk, zoom } from './of-body-and-time.ts';
import { fiveMinutes, type SignatureScheme } from './scheme.ts';
import { eventGrid, microsoftGraph, sns } from './unsigned.ts';

/** All schemes by their name in the API; for `hmac`, each webhook defines its own scheme. */
export const schemes: Readonly<Record<Exclude<SignatureSchemeName, 'hmac'>, SignatureScheme>> = {
  standard_webhooks: standardWebhooks,
  stripe,
  github,
  sentry,
  pagerduty,
  vercel,
  slack,
  gitlab,
  bitbucket,
  jira,
  linear,
  shopify,
  intercom,
  zendesk,
  grafana,
  zoom,
  event_grid: eventGrid,
  microsoft_graph: microsoftGraph,
  sns,
};

/** Returns the scheme for a webhook with the scheme `hmac`, in which a person has described how the sender signs. */
export function hmacScheme(signature: HmacSignature): SignatureScheme {
  const { header, id_header: id, timestamp_header: timestamp, signed = '{body}' } = signature;
  const names = { signature: header, ...(id ? { id } : {}), ...(timestamp ? { timestamp } : {}) };
  return {
    headers: [
      Object.fromEntries(Object.entries(names).map(([key, name]) => [key, name.toLowerCase()])) as typeof names,
    ],
    algorithm: signature.algorithm ?? 'sha256',
    encoding: signature.encoding ?? 'hex',
    prefix: signature.prefix ?? '',
    signed: signed.split(/(\{(?:id|timestamp|body)\})/).filter((part) => part !== ''),
    key: 'text',
    ...(timestamp ? { maxAgeSeconds: signature.max_age_seconds ?? fiveMinutes } : {}),
  };
}

/** Returns the scheme of a webhook; null if the webhook has no scheme. */
export function schemeOf(
  name: SignatureSchemeName | null | undefined,
  { signature }: Pick<WebhookRules, 'signature'> = {},
): SignatureScheme | null {
  if (name === 'hmac') return signature === undefined ? null : hmacScheme(signature);
  return name == null ? null : schemes[name];
}
