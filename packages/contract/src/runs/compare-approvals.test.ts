import { expect, test } from 'vitest';
import { ApprovalRules } from './approval-rules.ts';
import { type Approvals, describeApprovals, policyOfHarness, strictestApprovals } from './compare-approvals.ts';

const push = { push: '*' };
const host = { host: 'api.example.com' };
const command = { command: 'terraform apply' };

test.each<[name: string, a: Approvals, b: Approvals, expected: Approvals]>([
  ['no policy and no policy', {}, {}, {}],
  [
    'rules and no policy',
    { approval_policy: 'ask', approval_rules: [push] },
    {},
    { approval_policy: 'ask', approval_rules: [push] },
  ],
  [
    'rules and auto-approve',
    { approval_policy: 'auto-approve' },
    { approval_policy: 'ask', approval_rules: [push] },
    { approval_policy: 'ask', approval_rules: [push] },
  ],
  [
    'two lists of rules',
    { approval_policy: 'ask', approval_rules: [push, host] },
    { approval_policy: 'ask', approval_rules: [host, command] },
    { approval_policy: 'ask', approval_rules: [push, host, command] },
  ],
  [
    'rules and all actions',
    { approval_policy: 'ask', approval_rules: [push] },
    { approval_policy: 'ask' },
    { approval_policy: 'ask' },
  ],
  [
    'rules of auto-deny and of ask',
    { approval_policy: 'auto-deny', approval_rules: [push] },
    { approval_policy: 'ask', approval_rules: [host] },
    { approval_policy: 'auto-deny', approval_rules: [push, host] },
  ],
  [
    'more rules than a run can have',
    { approval_policy: 'ask', approval_rules: Array.from({ length: 50 }, (_, index) => ({ push: `acme/${index}` })) },
    { approval_policy: 'ask', approval_rules: [host] },
    { approval_policy: 'ask' },
  ],
])('the strictest approvals of %s ask about every action about which one of them asks', (_name, a, b, expected) => {
  expect(strictestApprovals(a, b)).toEqual(expected);
  expect(strictestApprovals(b, a).approval_policy).toBe(expected.approval_policy);
});

test.each([
  [[]],
  [[{}]],
  [[{ push: '*', host: 'example.com' }]],
  [[{ host: 'https://example.com' }]],
  [[{ pushes: '*' }]],
  [[{ push: ' ' }]],
  [Array.from({ length: 51 }, () => push)],
])('the rules %j are refused', (rules) => {
  expect(ApprovalRules.safeParse(rules).success).toBe(false);
});

test('the harness need not ask if the gateway and the proxy enforce all rules', () => {
  expect(policyOfHarness({ approval_policy: 'ask', approval_rules: [push, host] })).toBe('auto-approve');
  expect(policyOfHarness({ approval_policy: 'ask', approval_rules: [push, command] })).toBe('ask');
  expect(policyOfHarness({ approval_policy: 'ask' })).toBe('ask');
});

test('the description names each action that needs an approval, and the part that enforces the rule', () => {
  expect(describeApprovals({ approval_policy: 'ask', approval_rules: [push, host, command] })).toEqual([
    { text: 'every git push', enforced_by: 'gateway' },
    { text: 'connections to api.example.com', enforced_by: 'proxy' },
    { text: 'commands with the words terraform apply' },
  ]);
  expect(describeApprovals({ approval_policy: 'auto-approve' })).toEqual([]);
});
