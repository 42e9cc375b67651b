/** Words that schemas and command options share. This file does not load zod, because the help of commands uses it. */

export const approvalPolicies = ['ask', 'auto-approve', 'auto-deny'] as const;
export const runModes = ['normal', 'plan', 'orchestrate'] as const;
export const keyKinds = ['personal', 'agent', 'worker'] as const;
export const overlapPolicies = ['allow', 'skip', 'queue', 'cancel_previous'] as const;
export const secretScopes = ['personal', 'team'] as const;
export const usageDimensions = ['day', 'model', 'agent', 'creator', 'automation', 'factory', 'environment'] as const;
export const webhookAuthModes = ['token', 'url_token', 'signature'] as const;
export const signatureSchemeNames = [
  'standard_webhooks',
  'stripe',
  'github',
  'sentry',
  'pagerduty',
  'vercel',
  'slack',
  'gitlab',
  'bitbucket',
  'jira',
  'linear',
  'shopify',
  'intercom',
  'zendesk',
  'grafana',
  'zoom',
  'hmac',
  'event_grid',
  'microsoft_graph',
  'sns',
] as const;
/** Schemes of senders that do not sign with a secret. A token authenticates these senders. */
export const unsignedSchemeNames = [
  'event_grid',
  'microsoft_graph',
  'sns',
] as const satisfies readonly (typeof signatureSchemeNames)[number][];
export const signatureEncodings = ['hex', 'base64'] as const;
export const signatureAlgorithms = ['sha256', 'sha1', 'sha512'] as const;
/** Values of `followups_from` in the configuration of a run. */
export const followupAuthors = ['same_rights', 'team'] as const;

export const workerLossPolicies = ['fail', 'resume'] as const;

/** Value of `environment_id` that selects runs without an environment. */
export const emptyEnvironment = 'empty-environment';

/** Stages of a task of a factory, in their usual order. */
export const taskStages = ['TRIAGE', 'SPEC', 'IMPLEMENT', 'REVIEW', 'COMPLETE', 'CANCELLED'] as const;
