/** Rules that limit the policy `ask` to some actions. */
import { z } from 'zod';
import { AllowedHost } from '../egress/allowed-host.ts';
import { maxApprovalRules } from '../limits.ts';
import { NonBlank } from '../wire/primitives.ts';
import { approvalRuleKinds as kinds } from './compare-approvals.ts';

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
