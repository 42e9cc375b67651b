import { type AllowKeys, isAtLeast, type Role } from '@runyard/contract/wire/access';
import type { Principal } from './keys/principal.ts';

/**
 * Reasons why the owner of a key may not call a route. `wrong_kind`: keys of this kind may not call the route, whatever their role;
 * `not_operator`: only the operator's key may call it. `sign_in_again`: the sign-in of the session is too old.
 */
export type Permission =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'wrong_kind' }
  /** The key is limited to another purpose. */
  | { readonly kind: 'limited'; readonly to: string }
  | { readonly kind: 'not_operator' }
  | { readonly kind: 'sign_in_again' }
  | { readonly kind: 'role_too_low'; readonly needed: Role };

type KeyOwner = Pick<Principal, 'kind' | 'role'> &
  Partial<Pick<Principal, 'isOperator' | 'browserSession' | 'limitedTo'>>;

const allowed: Permission = { kind: 'allowed' };

const checkRole = (needed: Role, { role }: KeyOwner): Permission =>
  isAtLeast(role, needed) ? allowed : { kind: 'role_too_low', needed };

/** Decides whether the owner of the key may call the route, before the body is read. */
export function checkPermission(allow: AllowKeys, owner: KeyOwner): Permission {
  if (owner.limitedTo !== undefined && owner.limitedTo !== allow.limited)
    return { kind: 'limited', to: owner.limitedTo };
  switch (owner.kind) {
    case 'session':
      if (allow.session === false) return { kind: 'wrong_kind' };
      if (allow.operator) return { kind: 'not_operator' };
      if (allow.session === 'recent' && !owner.browserSession?.isRecent) return { kind: 'sign_in_again' };
      return checkRole(allow.user, owner);
    case 'user':
      return allow.operator && !owner.isOperator ? { kind: 'not_operator' } : checkRole(allow.user, owner);
    case 'agent':
      return allow.agent ? checkRole(allow.user, owner) : { kind: 'wrong_kind' };
    case 'worker':
      return allow.worker ? allowed : { kind: 'wrong_kind' };
  }
}

/** For routes where some bodies need a higher role: decides whether the owner of the key may send this body. */
export function checkBodyPermission({ byBody }: AllowKeys, owner: KeyOwner, body: unknown): Permission {
  if (!byBody || typeof body !== 'object' || body === null) return allowed;
  const value: unknown = Reflect.get(body, byBody.member);
  const [, needed] = Object.entries(byBody.roles).find(([each]) => each === value) ?? [];
  return needed === undefined ? allowed : checkRole(needed, owner);
}
