import type { WebhookRules } from '../webhook-rules.ts';
import type { SignatureSchemeName } from '../webhooks.ts';
import { bitbucket } from './bitbucket.ts';
import { eventGrid } from './event-grid.ts';
import { github } from './github.ts';
import { gitlab } from './gitlab.ts';
import { grafana } from './grafana.ts';
import { hmacScheme } from './hmac.ts';
import { intercom } from './intercom.ts';
import { jira } from './jira.ts';
import { linear } from './linear.ts';
import { microsoftGraph } from './microsoft-graph.ts';
import { pagerduty } from './pagerduty.ts';
import type { SignatureScheme } from './scheme.ts';
import { sentry } from './sentry.ts';
import { shopify } from './shopify.ts';
import { slack } from './slack.ts';
import { sns } from './sns.ts';
import { standardWebhooks } from './standard-webhooks.ts';
import { stripe } from './stripe.ts';
import { vercel } from './vercel.ts';
import { zendesk } from './zendesk.ts';
import { zoom } from './zoom.ts';

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

/** Returns the scheme of a webhook; null if the webhook has no scheme. */
export function schemeOf(
  name: SignatureSchemeName | null | undefined,
  { signature }: Pick<WebhookRules, 'signature'> = {},
): SignatureScheme | null {
  if (name === 'hmac') return signature === undefined ? null : hmacScheme(signature);
  return name == null ? null : schemes[name];
}
