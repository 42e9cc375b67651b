/** Decides whose a resource is, and who may use and change it. Domains with personal and team resources ask here. */
import { isAtLeast } from '@runyard/contract/access';
import type { Scope } from '@runyard/contract/profiles';
import type { Principal } from './keys/principal.ts';

/** Owner of a resource. Each resource belongs to a team; a personal one is that of one person in it. */
export type Owner = { readonly teamId: string; readonly userUid?: string };

type Caller = Pick<Principal, 'kind' | 'teamId' | 'role' | 'creator'>;

/** Returns the owner of what the caller creates. `forbidden`: agents have nothing personal. */
export function ownerOf(caller: Caller, scope: 'personal' | 'team'): Owner | 'forbidden' {
  if (scope === 'team') return { teamId: caller.teamId };
  return caller.creator.kind === 'user' ? { teamId: caller.teamId, userUid: caller.creator.uid } : 'forbidden';
}

/**
 * Decides what the caller may do with a resource of this owner. `hidden` becomes 404, `forbidden` 403. Team resources are used by
 * everyone in the team and changed from the role of a member. Personal ones are for their person only: an administrator may
 * delete them and nothing else, because using one acts as that person.
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
    const administers = caller.kind === 'user' && isAtLeast(caller.role, 'admin');
    return action === 'delete' && administers ? 'allowed' : 'hidden';
  }
  return action === 'use' || isAtLeast(caller.role, 'member') ? 'allowed' : 'forbidden';
}

/** Decides whether the caller knows of a resource of this owner: who may use or delete it does. Others get 404. */
export const maySee = (caller: Caller, owner: Owner): boolean =>
  (['use', 'delete'] as const).some((action) => decideOwnership(caller, owner, action) === 'allowed');

/** Returns the owner as the API shows it. */
export const scopeOf = ({ userUid }: Owner, teamUid: string): Scope =>
  userUid === undefined ? { type: 'Team', uid: teamUid } : { type: 'User', uid: userUid };
