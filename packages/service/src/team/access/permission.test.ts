import { principalKinds, type Role, roles } from '@runyard/contract/wire/access';
import { describe, expect, test } from 'vitest';
import { checkBodyPermission, checkPermission } from './permission.ts';

const kindsOf = (allow: Parameters<typeof checkPermission>[0], role: Role) =>
  principalKinds
    .filter((kind) => kind !== 'run')
    .filter((kind) => checkPermission(allow, { kind, role }).kind === 'allowed');

describe.each(roles)('a route that requires at least the role %s', (needed) => {
  test('admits users with this role or a higher role', () => {
    const admitted = roles.filter((role) => kindsOf({ user: needed }, role).includes('user'));
    expect(admitted).toEqual(roles.slice(0, roles.indexOf(needed) + 1));
  });

  test('names this role when it refuses users with a lower role', () => {
    for (const role of roles.slice(roles.indexOf(needed) + 1)) {
      expect(checkPermission({ user: needed }, { kind: 'user', role })).toEqual({ kind: 'role_too_low', needed });
    }
  });
});

test('a route accepts keys of agents and of workers only if it declares them, and accepts sessions if it accepts users', () => {
  expect(kindsOf({ user: 'viewer' }, 'member')).toEqual(['user', 'session']);
  expect(kindsOf({ user: 'viewer', session: false }, 'member')).toEqual(['user']);
  expect(kindsOf({ user: 'viewer', agent: true }, 'member')).toEqual(['user', 'agent', 'session']);
  expect(kindsOf({ user: 'viewer', worker: true }, 'member')).toEqual(['user', 'worker', 'session']);
});

test('a session has the role of its person, may not do actions of the operator, and must be recent for some routes', () => {
  const of = (isRecent: boolean, role: Role = 'owner') =>
    ({ kind: 'session', role, browserSession: { expiresAt: '', isRecent } }) as const;
  expect(checkPermission({ user: 'admin' }, of(true, 'member'))).toEqual({ kind: 'role_too_low', needed: 'admin' });
  expect(checkPermission({ user: 'viewer', operator: true }, of(true))).toEqual({ kind: 'not_operator' });
  expect(checkPermission({ user: 'viewer', session: 'recent' }, of(true))).toEqual({ kind: 'allowed' });
  expect(checkPermission({ user: 'viewer', session: 'recent' }, of(false))).toEqual({ kind: 'sign_in_again' });
});

test('an agent key whose role is too low is refused', () => {
  const permission = checkPermission({ user: 'admin', agent: true }, { kind: 'agent', role: 'member' });
  expect(permission).toEqual({ kind: 'role_too_low', needed: 'admin' });
});

test('a route requires a higher role only if the body contains a value for which this role is needed', () => {
  const allow = { user: 'member', byBody: { member: 'kind', roles: { agent: 'admin' } } } as const;
  const check = (role: Role, body: unknown) => checkBodyPermission(allow, { kind: 'user', role }, body).kind;
  expect(check('member', { kind: 'agent' })).toBe('role_too_low');
  expect(check('admin', { kind: 'agent' })).toBe('allowed');
  for (const body of [{ kind: 'personal' }, { kind: 'toString' }, {}, 'agent', null, undefined]) {
    expect(check('member', body)).toBe('allowed');
  }
});
