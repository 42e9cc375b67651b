/** The schemes of senders whose signature covers the body, but no time in a header. The secret of GitLab is itself in a header. */
import { fiveMinutes, type SignatureScheme } from './scheme.ts';

/** https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/#Secure-webhooks, and event-payloads for the headers. */
export const bitbucket: SignatureScheme = {
  headers: [{ signature: 'x-hub-signature', id: 'x-request-uuid' }],
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: 'sha256=',
  signed: ['{body}'],
  key: 'text',
  eventHeader: 'x-event-key',
  otherHeaders: ['x-hook-uuid', 'x-attempt-number'],
};

const githubMembers = {
  pull_request_review: ['review', 'pull_request'],
  pull_request_review_comment: ['comment', 'pull_request'],
  issue_comment: ['comment', 'issue'],
  push: ['ref', 'commits'],
  create: ['ref', 'ref_type'],
  issues: ['issue'],
  pull_request: ['pull_request'],
  check_run: ['check_run'],
  check_suite: ['check_suite'],
  workflow_run: ['workflow_run'],
  ping: ['zen'],
};

/** https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries. GitHub signs neither time nor id. */
export const github: SignatureScheme = {
  headers: [{ signature: 'x-hub-signature-256', id: 'x-github-delivery' }],
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: 'sha256=',
  signed: ['{body}'],
  key: 'text',
  eventHeader: 'x-github-event',
  eventMembers: githubMembers,
  formField: 'payload',
  ifTooLarge:
    'GitHub does not send it again. Choose the content type application/json, push fewer commits at once, or use an event with a small body, such as workflow_run, which follows the push',
  otherHeaders: ['x-github-hook-id', 'x-github-hook-installation-target-id', 'x-github-hook-installation-target-type'],
};

/**
 * https://docs.gitlab.com/user/project/integrations/webhooks/#delivery-headers: a header contains the secret token itself. The id of a
 * delivery is `Idempotency-Key`, because it stays the same if GitLab sends the delivery again. GitLab before 17.4 does not send this
 * header. For these versions, the id is the UUID of the event. This UUID can change in a repeated delivery, and several events can
 * share it (recursion_detection/uuid.rb of GitLab).
 */
export const gitlab: SignatureScheme = {
  headers: [{ signature: 'x-gitlab-token', id: 'idempotency-key', olderId: 'x-gitlab-event-uuid' }],
  algorithm: 'plain',
  encoding: 'hex',
  prefix: '',
  signed: [],
  key: 'text',
  eventHeader: 'x-gitlab-event',
  otherHeaders: ['x-gitlab-webhook-uuid', 'x-gitlab-instance'],
};

/** https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/#hmac-signature */
export const grafana: SignatureScheme = {
  headers: [{ signature: 'x-grafana-alerting-signature' }],
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: '',
  signed: ['{body}'],
  key: 'text',
};

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

/** https://developer.atlassian.com/cloud/jira/platform/webhooks/#secure-admin-webhooks; the identifier stays the same in retries. */
export const jira: SignatureScheme = {
  headers: [{ signature: 'x-hub-signature', id: 'x-atlassian-webhook-identifier' }],
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: 'sha256=',
  signed: ['{body}'],
  key: 'text',
  otherHeaders: ['x-atlassian-webhook-retry', 'x-atlassian-webhook-flow'],
};

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

/**
 * https://developer.pagerduty.com/docs/verifying-webhook-signatures: the header is `v1=…,v1=…`. While secrets are rotated, it has one
 * signature for each secret.
 */
export const pagerduty: SignatureScheme = {
  headers: [{ signature: 'x-pagerduty-signature' }],
  algorithm: 'sha256',
  encoding: 'hex',
  separator: ',',
  prefix: 'v1=',
  signed: ['{body}'],
  key: 'text',
  idMember: 'event.id',
  otherHeaders: ['x-webhook-id', 'x-webhook-subscription'],
};

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

/**
 * https://shopify.dev/docs/apps/build/webhooks/subscribe/https#step-2-validate-the-origin-of-your-webhook. The id is that of the
 * delivery and not that of the event, because several deliveries can share the id of an event.
 */
export const shopify: SignatureScheme = {
  headers: [{ signature: 'x-shopify-hmac-sha256', id: 'x-shopify-webhook-id' }],
  algorithm: 'sha256',
  encoding: 'base64',
  prefix: '',
  signed: ['{body}'],
  key: 'text',
  eventHeader: 'x-shopify-topic',
  otherHeaders: ['x-shopify-event-id', 'x-shopify-shop-domain', 'x-shopify-triggered-at', 'x-shopify-api-version'],
};

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
