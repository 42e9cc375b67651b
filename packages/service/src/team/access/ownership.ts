/** Decides who owns a resource, and who may use and change it. Domains with personal and team resources call it. */
import { isAtLeast } from '@runyard/contract/wire/access';
import type { Scope } from '@runyard/contract/wire/profiles';
import type { RunActor } from './actor.ts';
import type { Principal } from './keys/principal.ts';

/** Owner of a resource. Each resource belongs to a team; a personal resource belongs to one person of the team. */
export type Owner = { readonly teamId: string; readonly userUid?: string };

type Caller = Pick<Principal, 'kind' | 'teamId' | 'role' | 'creator'>;

/** Returns the owner of a resource that the caller creates. `forbidden`: agents own no personal resources. */
export function ownerOf(caller: Caller, scope: 'personal' | 'team'): Owner | 'forbidden' {
  if (scope === 'team') return { teamId: caller.teamId };
  return caller.creator.kind === 'user' ? { teamId: caller.teamId, userUid: caller.creator.uid } : 'forbidden';
}

/**
 * Decides how the caller may use a resource of this owner. `hidden` becomes 404, `forbidden` 403. Everyone in the team may use a team
 * resource, and members and higher roles may change it. Only the person who owns a personal resource may use or change it. An administrator
 * may only delete it: to use it would mean to act as that person.
 */
export function decideOwnership(
  caller: Caller,
  owner: Owner,
  action: 'use' | 'change' | 'delete',
): 'allowed' | 'hidden' | 'forbidden' {
  if (owner.teamId !== caller.teamId) return 'hidden';
  const isOwn = caller.creator.kind === 'user' && owner.userUid === caller.creator.uid;
  if (owner.userUid !== undefined) {
    if (isOwn) return 'allowed';
    const administers = caller.creator.kind === 'user' && isAtLeast(caller.role, 'admin');
    return action === 'delete' && administers ? 'allowed' : 'hidden';
  }
  return action === 'use' || isAtLeast(caller.role, 'member') ? 'allowed' : 'forbidden';
}

/**
 * Decides whether the caller may know that a resource of this owner exists. A caller who may use or delete the resource may see it; other
 * callers get 404.
 */
export const maySee = (caller: Caller, owner: Owner): boolean =>
  (['use', 'delete'] as const).some((action) => decideOwnership(caller, owner, action) === 'allowed');

/** Returns the owner as the API shows it. */
export const scopeOf = ({ userUid }: Owner, teamUid: string): Scope =>
  userUid === undefined ? { type: 'Team', uid: teamUid } : { type: 'User', uid: userUid };

/** Thrown if an agent key tries to change a resource that a person made. The caller must roll the transaction back; the answer is 403. */
export class MadeByPerson extends Error {
  override readonly name = 'MadeByPerson';
}

/**
 * Checks that the author may change a team resource that `maker` made; null: the maker is unknown. Agent keys may change only resources
 * that agents made. The reason is that a program in a sandbox may have an agent key, and such resources are executed with the rights of
 * other people. Throws `MadeByPerson`.
 */
export function requireMaker(by: { readonly creator: Pick<RunActor, 'kind'> }, maker: RunActor['kind'] | null): void {
  if (by.creator.kind === 'service_account' && maker !== 'service_account')
    throw new MadeByPerson('a person made what an agent key was about to change');
}
