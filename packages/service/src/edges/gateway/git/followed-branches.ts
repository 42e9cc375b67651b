import { maxBranchesOfPush } from '@runyard/contract/limits';
import { branchOf, type PushFacts } from '../../../runs/repositories/pushes/decide.ts';
import type { PushCommand } from '../../../runs/repositories/pushes/read-commands.ts';
import { readAliases } from '../../../team/code-hosts/aliases.ts';
import {
  type AboutRepository,
  askAbout,
  readDefaultBranch,
  type Unanswered,
} from '../../../team/code-hosts/default-branch.ts';
import type { PushedRepository } from '../../../triggers/definitions/source/followed.ts';

/** Reads the branches from which factories take their definitions. */
export interface FollowedBranches {
  isAnyBranchFollowed(): Promise<boolean>;
  /** Returns the names of the followed branches; null in the list means the repository's default branch. */
  followedBranchesOf(pushed: PushedRepository): Promise<readonly (string | null)[]>;
}

/** The followed branches of a repository, read at the beginning of a push. */
interface Followed {
  readonly kind: 'followed';
  readonly followedBranches: readonly (string | null)[];
  /** Returns the reason to stop the push if the followed branches have changed; otherwise undefined. */
  findChange(): Promise<string | undefined>;
}

const maxCapabilityBytes = 64 * 1024;
const changed = 'a factory began to take its definition from a branch of this repository: push again';

/**
 * Reads the followed branches of a repository. If any factory follows a branch, asks the code host for the present URL of the repository,
 * because a factory may use another URL, such as the URL before a rename.
 */
export async function watchFollowed(about: AboutRepository, sources: FollowedBranches): Promise<Followed | Unanswered> {
  const { repository } = about;
  const asked = (await sources.isAnyBranchFollowed()) ? await askAbout(about, 2, maxCapabilityBytes) : null;
  if (asked !== null && asked.kind !== 'answer') return asked;
  const pushed = { repository, foundAt: asked?.base ?? null };
  const followedBranches = await sources.followedBranchesOf(pushed);
  return {
    kind: 'followed',
    followedBranches,
    findChange: async () => {
      const now = await sources.followedBranchesOf(pushed);
      return now.every((branch) => followedBranches.includes(branch)) ? undefined : changed;
    },
  };
}

type Branches = { readonly kind: 'branches' } & Pick<PushFacts, 'defaultBranch' | 'aliases'>;

/** Asks the code host for the facts that the rules for protected and followed branches need: the default branch and the aliases of branches. */
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
