import { maxBranchesOfPush } from '@runyard/contract/limits';
import { branchOf, type PushFacts } from '../../../runs/repositories/pushes/decide.ts';
import type { PushCommand } from '../../../runs/repositories/pushes/read-commands.ts';
import { readAliases } from '../../../team/code-hosts/aliases.ts';
import { type AboutRepository, readDefaultBranch, type Unanswered } from '../../../team/code-hosts/default-branch.ts';

type Branches = { readonly kind: 'branches' } & Pick<PushFacts, 'defaultBranch' | 'aliases'>;

/** Asks the code host what the rules for protected and followed branches need to know about the branches of a push. */
export async function readBranchesOfPush(
  about: AboutRepository,
  { protectedBranches, followedBranches }: Pick<PushFacts, 'protectedBranches' | 'followedBranches'>,
  commands: readonly PushCommand[],
): Promise<Branches | Unanswered> {
  const pushed = commands.slice(0, maxBranchesOfPush).flatMap(({ ref }) => branchOf(ref) ?? []);
  const followed = followedBranches.filter((name) => name !== null);
  const asksDefault = protectedBranches.includes('HEAD') || followedBranches.includes(null);
  const asksAliases = protectedBranches.length + followedBranches.length > 0 && pushed.length > 0;
  const [branch, names] = await Promise.all([
    asksDefault ? readDefaultBranch(about) : ({ kind: 'branch', name: null } as const),
    asksAliases
      ? readAliases(about, [...pushed, ...followed])
      : ({ kind: 'aliases', aliases: new Map<string, string>() } as const),
  ]);
  if (branch.kind !== 'branch') return branch;
  if (names.kind !== 'aliases') return names;
  return { kind: 'branches', defaultBranch: branch.name, aliases: names.aliases };
}
