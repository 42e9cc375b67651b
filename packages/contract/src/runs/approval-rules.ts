/** Rules that limit the policy `ask` to some actions. */
import { z } from 'zod';
import { AllowedHost } from '../egress/allowed-host.ts';
import { maxApprovalRules } from '../limits.ts';
import { NonBlank } from '../wire/primitives.ts';
import type { ApprovalPolicy } from './approvals.ts';

const kinds = ['push', 'host', 'tool', 'command', 'write_outside'] as const;
export type ApprovalRuleKind = (typeof kinds)[number];

/** A text in which `*` stands for any text. */
const Pattern = NonBlank.max(300);

/** Actions that a person has to approve: exactly one member. */
export const ApprovalRule = z
  .object({
    push: Pattern.optional().describe(
      'Pushes to the repositories `owner/name` that match; `*` stands for any text. The git gateway enforces it',
    ),
    host: AllowedHost.optional().describe(
      "Connections to a host that the environment allows, in the form of the environment's `allowed_hosts`; a rule without a port names all ports. The proxy of the sandbox enforces it",
    ),
    tool: Pattern.optional().describe(
      'Calls of tools whose name matches; `*` stands for any text. Advice: the harness asks before such a call, if its protocol asks about the tool',
    ),
    command: Pattern.optional().describe(
      'Commands with these words in this order. Advice: a script or an alias can hide the words',
    ),
    write_outside: Pattern.optional().describe(
      'Changes of files outside of this folder of the workspace, by tools for files. Advice: a command can write without such a tool',
    ),
  })
  .refine((rule) => kinds.filter((kind) => rule[kind] !== undefined).length === 1, {
    error: `needs exactly one of ${kinds.join(', ')}`,
  })
  .meta({
    id: 'ApprovalRule',
    description: 'Actions that a person has to approve: exactly one member',
    allOf: [{ oneOf: kinds.map((kind) => ({ required: [kind] })) }],
  });
export type ApprovalRule = z.infer<typeof ApprovalRule>;

export const ApprovalRules = z.array(ApprovalRule).min(1).max(maxApprovalRules);

/** The part of the service that holds an action until a person decides. */
export const HeldBy = z.enum(['gateway', 'proxy']).meta({
  id: 'HeldBy',
  description:
    'The part that holds matching actions, however a program makes them. `gateway`: the git gateway of the service, for pushes. `proxy`: the proxy of the sandbox, for connections',
});
export type HeldBy = z.infer<typeof HeldBy>;

/** A rule in words, in answers about a run. */
export const DescribedApproval = z
  .object({
    text: z.string().describe('The rule in words'),
    enforced_by: HeldBy.optional().meta({
      description: 'Absent: the rule is advice, because the harness asks about actions by their words',
    }),
  })
  .meta({ id: 'DescribedApproval', description: 'What a person has to approve, in words' });
export type DescribedApproval = z.infer<typeof DescribedApproval>;

/** The members of a configuration that say what a person has to approve. */
export interface Approvals {
  readonly approval_policy?: ApprovalPolicy | undefined;
  readonly approval_rules?: readonly ApprovalRule[] | undefined;
}

/** Returns the kind and the text of a rule. */
export function partsOfRule(rule: ApprovalRule): { readonly kind: ApprovalRuleKind; readonly text: string } {
  for (const kind of kinds) {
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
