import { type AboutRepository, askAbout, type Unanswered } from '../../../team/code-hosts/default-branch.ts';
import type { PushedRepository } from '../../../triggers/definitions/source/followed.ts';

/** Reads the branches from which factories take their definitions. */
export interface FollowedBranches {
  isAnyBranchFollowed(): Promise<boolean>;
  /** null in the list: the default branch. */
  followedBranchesOf(pushed: PushedRepository): Promise<readonly (string | null)[]>;
}

/** The followed branches of a repository at the beginning of a push. */
interface Followed {
  readonly kind: 'followed';
  readonly followedBranches: readonly (string | null)[];
  /** Returns why the push must stop, if other branches are followed now. */
  findChange(): Promise<string | undefined>;
}

const maxCapabilityBytes = 64 * 1024;
const changed = 'a factory began to take its definition from a branch of this repository: push again';

/**
 * Reads the followed branches of a repository. The code host is asked where it has the repository, because a factory may name it
 * otherwise, such as before it was renamed; but only if any factory follows a branch.
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
