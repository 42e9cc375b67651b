import type { SignatureSchemeName } from '../webhooks.ts';
import { github } from './github.ts';
import { gitlab } from './gitlab.ts';
import { pagerduty } from './pagerduty.ts';
import type { SignatureScheme } from './scheme.ts';
import { sentry } from './sentry.ts';
import { slack } from './slack.ts';
import { standardWebhooks } from './standard-webhooks.ts';
import { stripe } from './stripe.ts';
import { vercel } from './vercel.ts';

/** All schemes by their name in the API. */
export const schemes: Readonly<Record<SignatureSchemeName, SignatureScheme>> = {
  standard_webhooks: standardWebhooks,
  stripe,
  github,
  sentry,
  pagerduty,
  vercel,
  slack,
  gitlab,
};
