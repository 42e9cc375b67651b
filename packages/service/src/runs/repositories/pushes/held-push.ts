import type { ApprovalRule } from '@runyard/contract/runs/approval-rules';
import { matchesPattern } from '@runyard/contract/wire/matches-pattern';
import type { HeldAction } from '../../executions/held-actions/held-actions.ts';
import { branchOf } from './decide.ts';
import { isNone } from './read-commands.ts';
import type { Push } from './record.ts';

/** Returns the push as an action that a person has to approve; undefined if no rule matches its repository. */
export function heldPushOf(
  rules: readonly ApprovalRule[],
  push: Pick<Push, 'repository' | 'commands'>,
): HeldAction | undefined {
  const name = `${push.repository.owner}/${push.repository.repo}`;
  if (!rules.some(({ push: pattern }) => pattern !== undefined && matchesPattern(pattern, name))) return undefined;
  const branches = push.commands
    .map(({ ref, from, to }) => ({ branch: branchOf(ref) ?? ref, from: isNone(from) ? null : from, to }))
    .sort((a, b) => (a.branch < b.branch ? -1 : 1));
  const lines = branches.map(({ branch, from, to }) => `${branch}: ${from ?? 'new branch'} -> ${to}`);
  const names = branches.map(({ branch }) => branch).join(', ');
  return {
    heldBy: 'gateway',
    subject: JSON.stringify([name.toLowerCase(), branches]),
    restOfRun: `all git pushes to ${names} of ${name}`,
    title: `git push to ${name}\n${lines.join('\n')}`,
    action: { name: 'git push', category: 'command', input: { repository: name, branches } },
  };
}
