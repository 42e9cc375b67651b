/** Compares and describes the approvals of runs. This module loads no schemas, because the agent loads it at each start. */
import { maxApprovalRules } from '../limits.ts';
import type { ApprovalRule, DescribedApproval, HeldBy } from './approval-rules.ts';
import type { ApprovalPolicy } from './approvals.ts';

export const approvalRuleKinds = ['push', 'host', 'tool', 'command', 'write_outside'] as const;
export type ApprovalRuleKind = (typeof approvalRuleKinds)[number];

/** The members of a configuration that say what a person has to approve. */
export interface Approvals {
  readonly approval_policy?: ApprovalPolicy | undefined;
  readonly approval_rules?: readonly ApprovalRule[] | undefined;
}

/** Returns the kind and the text of a rule. */
export function partsOfRule(rule: ApprovalRule): { readonly kind: ApprovalRuleKind; readonly text: string } {
  for (const kind of approvalRuleKinds) {
    const text = rule[kind];
    if (text !== undefined) return { kind, text };
  }
  throw new Error('a rule without a member');
}

const inWords: Readonly<Record<ApprovalRuleKind, (text: string) => string>> = {
  push: (text) => (text === '*' ? 'every git push' : `git pushes to ${text}`),
  host: (text) => `connections to ${text}`,
  tool: (text) => `calls of the tool ${text}`,
  command: (text) => `commands with the words ${text}`,
  write_outside: (text) => `changes of files outside of the folder ${text}, by tools for files`,
};

/** Returns the actions that match the rule, in words. */
export function describeRule(rule: ApprovalRule): string {
  const { kind, text } = partsOfRule(rule);
  return inWords[kind](text);
}

const enforcers: Readonly<Partial<Record<ApprovalRuleKind, HeldBy>>> = {
  push: 'gateway',
  host: 'proxy',
};

/** Returns the actions that need an approval in a run with this configuration, in words; empty: none. */
export function describeApprovals({ approval_policy: policy, approval_rules: rules }: Approvals): DescribedApproval[] {
  if (policy !== 'ask' && policy !== 'auto-deny') return [];
  if (rules === undefined) return [{ text: 'every command and every change of a file' }];
  return rules.map((rule) => {
    const enforcedBy = enforcers[partsOfRule(rule).kind];
    return { text: describeRule(rule), ...(enforcedBy ? { enforced_by: enforcedBy } : {}) };
  });
}

/**
 * Returns the policy for the actions that the harness asks about. If the gateway and the proxy enforce all rules, the harness need not ask.
 */
export function policyOfHarness({ approval_policy: policy, approval_rules: rules }: Approvals): ApprovalPolicy {
  const needsHarness = rules?.some((rule) => enforcers[partsOfRule(rule).kind] === undefined) ?? true;
  return policy === undefined || !needsHarness ? 'auto-approve' : policy;
}

const byStrictness: readonly ApprovalPolicy[] = ['auto-approve', 'ask', 'auto-deny'];

/** Returns the stricter of the two policies; of two equal ones the first. Undefined and unknown policies are the least strict. */
function stricterPolicy(a: ApprovalPolicy | undefined, b: ApprovalPolicy | undefined): ApprovalPolicy | undefined {
  const rank = (policy: ApprovalPolicy | undefined) => (policy === undefined ? -1 : byStrictness.indexOf(policy));
  return rank(a) >= rank(b) ? a : b;
}

const asks = ({ approval_policy: policy }: Approvals): boolean => policy === 'ask' || policy === 'auto-deny';

/**
 * Returns approvals that are at least as strict as both: the stricter policy, for all actions for which one of them has a policy other than
 * `auto-approve`. The policy without rules is for all actions.
 */
export function strictestApprovals(a: Approvals, b: Approvals): Approvals {
  const policy = stricterPolicy(a.approval_policy, b.approval_policy);
  if (policy === undefined) return {};
  const asking = [a, b].filter(asks);
  if (asking.length === 0 || asking.some(({ approval_rules: rules }) => rules === undefined))
    return { approval_policy: policy };
  const rules = asking.flatMap(({ approval_rules }) => approval_rules ?? []);
  const unique = new Map(rules.map((rule) => [JSON.stringify(partsOfRule(rule)), rule]));
  // More rules than a run can have become the policy without rules, which is stricter.
  return unique.size > maxApprovalRules
    ? { approval_policy: policy }
    : { approval_policy: policy, approval_rules: [...unique.values()] };
}
