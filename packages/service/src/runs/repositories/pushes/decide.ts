import { maxBranchesOfPush } from '@runyard/contract/limits';
import { folded, matchesPattern } from '@runyard/contract/wire/matches-pattern';
import { misleadingName, skeletonOf } from './branch-names.ts';
import { type Commits, descendsFrom } from './leading-commits.ts';
import { isNone, type PushCommand } from './read-commands.ts';

/** The facts that decide about a push. */
export interface PushFacts {
  readonly commands: readonly PushCommand[];
  /** True if the push has options for the code host. */
  readonly hasOptions: boolean;
  /** Patterns for the names of protected branches; `HEAD` means the default branch. */
  readonly protectedBranches: readonly string[];
  /** Branches from which factories take their definitions. They do not depend on the run's environment. null means the default branch. */
  readonly followedBranches: readonly (string | null)[];
  /** null if the repository has no branch yet. */
  readonly defaultBranch: string | null;
  /** Maps each branch that is only another name (a symbolic ref) to the real branch. */
  readonly aliases: ReadonlyMap<string, string>;
  /** Branches that this run created, each with the last commit that the run pushed to it. */
  readonly own: ReadonlyMap<string, string>;
  /** Commits that the push contains. */
  readonly commits: Commits;
}

/** Maps the full name of each refused ref to the reason for the refusal. */
export type Refusals = ReadonlyMap<string, string>;

const heads = 'refs/heads/';
const instead = 'push to another branch and open a pull request';

/** Returns the short name of a branch; undefined if the ref is not a branch. */
export const branchOf = (ref: string): string | undefined =>
  ref.startsWith(heads) ? ref.slice(heads.length) : undefined;

/**
 * Push options are dangerous: with `merge_request.auto_merge`, GitLab merges a branch; with `repo.private=false`, Gitea and Forgejo make a
 * repository public.
 */
const optionsRefused = 'push options can merge branches and change the repository: push without -o';

/** Decides which refs of a push are refused. If no ref is refused, the whole push may be forwarded; otherwise nothing is forwarded. */
export function decidePush(facts: PushFacts): Refusals {
  const { commands, hasOptions } = facts;
  const refused = new Map<string, string>();
  for (const command of commands) {
    const reason =
      commands.length > maxBranchesOfPush
        ? `a push can update at most ${maxBranchesOfPush} branches`
        : hasOptions
          ? optionsRefused
          : reasonAgainst(command, facts);
    if (reason !== undefined) refused.set(command.ref, reason);
  }
  if (refused.size === 0) return refused;
  return new Map(
    commands.map(({ ref }) => [ref, refused.get(ref) ?? 'not pushed, because another ref of this push is refused']),
  );
}

function reasonAgainst({ ref, from, to }: PushCommand, facts: PushFacts): string | undefined {
  const branch = branchOf(ref);
  if (branch === undefined) return 'runs push branches only, no tags or other refs';
  if (isNone(to)) return 'runs delete no branches';
  const { own, commits, aliases } = facts;
  if (isFollowed(branch, facts)) return `a factory takes its definition from ${branch}: ${instead}`;
  const protection = protectionOf(branch, facts);
  if (protection !== undefined) return protection;
  const misleading = misleadingName(branch) ?? lookAlikeOf(branch, facts);
  if (misleading !== undefined) return misleading;
  const behind = aliases.get(branch);
  if (behind !== undefined && protectionOf(behind, facts) !== undefined)
    return `${branch} is another name of ${behind}, which is protected: ${instead}`;
  if (isNone(from) || own.get(branch) === from || descendsFrom(commits, to, from)) return undefined;
  return 'it may drop commits that this run did not make: put your work on top of the branch as it is now, or push to a new branch';
}

/** Returns whether a factory takes its definition from the branch, or from the same branch under another name. */
function isFollowed(branch: string, { followedBranches, defaultBranch, aliases }: PushFacts): boolean {
  const behind = (name: string) => folded(aliases.get(name) ?? name);
  return followedBranches.some((each) => {
    const followed = each ?? defaultBranch;
    return followed !== null && (behind(followed) === behind(branch) || folded(followed) === folded(branch));
  });
}

/** Returns the reason why a run may not push to the branch with this name; undefined if the branch is not protected. */
function protectionOf(branch: string, { protectedBranches, defaultBranch }: PushFacts): string | undefined {
  for (const pattern of protectedBranches) {
    const isDefault = pattern === 'HEAD';
    const name = isDefault ? defaultBranch : pattern;
    if (name === null || !(isDefault ? folded(name) === folded(branch) : matchesPattern(name, branch))) continue;
    return pattern === '*'
      ? 'the environment allows no pushes'
      : `${branch} is protected${isDefault ? ' as the default branch' : ''}: ${instead}`;
  }
  return undefined;
}

/**
 * If people could confuse the branch with a protected branch, or with a branch from which a factory takes its definition, returns the
 * reason why a run may not push to it.
 */
function lookAlikeOf(branch: string, facts: PushFacts): string | undefined {
  const { protectedBranches, followedBranches, defaultBranch } = facts;
  const looks = skeletonOf(branch);
  const names = [...protectedBranches, ...followedBranches.map((name) => name ?? 'HEAD')];
  const taken = names
    .map((name) => (name === 'HEAD' ? (defaultBranch ?? '') : name))
    .find((name) => name !== '' && matchesPattern(skeletonOf(name), looks));
  return taken && `${branch} looks like ${taken}, which is protected: choose another name`;
}
