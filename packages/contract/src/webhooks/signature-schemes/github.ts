import type { SignatureScheme } from './scheme.ts';

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
