/** Sample events of providers, shortened to the members that automations compare. */

/** An event that a person can simulate. */
export interface Sample {
  readonly name: string;
  /** Signature scheme of the provider. Absent: the sample is for webhooks with any scheme. */
  readonly scheme?: string;
  /** Name of the event, which the provider sends in a header. */
  readonly event?: string;
  readonly payload: unknown;
}

const repository = { full_name: 'acme/billing', default_branch: 'main', private: true };
const sender = { login: 'octocat', type: 'User' };
const issue = {
  number: 7,
  title: 'Totals are wrong',
  body: 'The tax is added twice.',
  state: 'open',
  labels: [{ name: 'bug' }],
  user: sender,
};

export const samples: readonly Sample[] = [
  {
    name: 'GitHub: push to main',
    scheme: 'github',
    event: 'push',
    payload: {
      ref: 'refs/heads/main',
      repository,
      sender,
      commits: [{ id: '7f1c', message: 'Add tax', added: [], removed: [], modified: ['src/tax.ts'] }],
    },
  },
  {
    name: 'GitHub: pull request opened',
    scheme: 'github',
    event: 'pull_request',
    payload: {
      action: 'opened',
      number: 12,
      pull_request: {
        number: 12,
        title: 'Add tax',
        draft: false,
        user: sender,
        base: { ref: 'main', repo: repository },
        head: { ref: 'tax', repo: repository },
        labels: [],
      },
      repository,
      sender,
    },
  },
  {
    name: 'GitHub: issue opened',
    scheme: 'github',
    event: 'issues',
    payload: { action: 'opened', issue, repository, sender },
  },
  {
    name: 'GitLab: merge request opened',
    scheme: 'gitlab',
    event: 'Merge Request Hook',
    payload: {
      object_kind: 'merge_request',
      object_attributes: { action: 'open', title: 'Add tax', source_branch: 'tax', target_branch: 'main' },
      project: { path_with_namespace: 'acme/billing' },
    },
  },
  {
    name: 'Sentry: issue created',
    scheme: 'sentry',
    event: 'issue',
    payload: {
      action: 'created',
      data: {
        issue: { id: '5871940213', title: 'TypeError: tax.lines', level: 'error', project: { slug: 'billing' } },
      },
    },
  },
  {
    name: 'Stripe: invoice payment failed',
    scheme: 'stripe',
    payload: {
      id: 'evt_1',
      type: 'invoice.payment_failed',
      data: { object: { id: 'in_1', customer: 'cus_1', amount_due: 4200, currency: 'eur', attempt_count: 2 } },
    },
  },
  {
    name: 'Linear: issue created',
    scheme: 'linear',
    event: 'Issue',
    payload: {
      action: 'create',
      type: 'Issue',
      data: { identifier: 'BILL-12', title: 'Totals are wrong', priority: 1 },
    },
  },
  {
    name: 'PagerDuty: incident triggered',
    scheme: 'pagerduty',
    payload: {
      event: { event_type: 'incident.triggered', data: { id: 'Q1', title: 'Billing is down', urgency: 'high' } },
    },
  },
  { name: 'An alert', payload: { status: 'firing', alert: { id: 7, severity: 'critical' } } },
];
