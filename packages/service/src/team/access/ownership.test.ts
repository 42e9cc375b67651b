import { expect, test } from 'vitest';
import { decideOwnership, ownerOf, scopeOf } from './ownership.ts';

const caller = (uid: string, role: 'owner' | 'admin' | 'member' | 'viewer', kind: 'user' | 'agent' = 'user') => ({
  kind,
  teamId: 'team',
  role,
  creator: { kind: kind === 'user' ? ('user' as const) : ('service_account' as const), uid, displayName: uid },
});
const actions = ['use', 'change', 'delete'] as const;
const decided = (by: ReturnType<typeof caller>, owner: { teamId: string; userUid?: string }) =>
  actions.map((action) => decideOwnership(by, owner, action));

test('resources of another team are hidden', () => {
  expect(decided(caller('ada', 'owner'), { teamId: 'other' })).toEqual(['hidden', 'hidden', 'hidden']);
});

test('everyone in the team may use team resources, and members may change them', () => {
  const owner = { teamId: 'team' };
  expect(decided(caller('ada', 'viewer'), owner)).toEqual(['allowed', 'forbidden', 'forbidden']);
  expect(decided(caller('ada', 'member'), owner)).toEqual(['allowed', 'allowed', 'allowed']);
  expect(decided(caller('bot', 'member', 'agent'), owner)).toEqual(['allowed', 'allowed', 'allowed']);
});

test('only the person who owns a personal resource can use it, and administrators can only delete it', () => {
  const owner = { teamId: 'team', userUid: 'ada' };
  expect(decided(caller('ada', 'viewer'), owner)).toEqual(['allowed', 'allowed', 'allowed']);
  expect(decided(caller('bob', 'member'), owner)).toEqual(['hidden', 'hidden', 'hidden']);
  expect(decided(caller('eve', 'owner'), owner)).toEqual(['hidden', 'hidden', 'allowed']);
  expect(decided(caller('ada', 'member', 'agent'), owner)).toEqual(['hidden', 'hidden', 'hidden']);
});

test('agents cannot own personal resources, and the API shows owners as scopes', () => {
  expect(ownerOf(caller('bot', 'member', 'agent'), 'personal')).toBe('forbidden');
  const own = ownerOf(caller('ada', 'member'), 'personal');
  expect(own).toEqual({ teamId: 'team', userUid: 'ada' });
  expect(own !== 'forbidden' && scopeOf(own, 'T')).toEqual({ type: 'User', uid: 'ada' });
  expect(scopeOf({ teamId: 'team' }, 'T')).toEqual({ type: 'Team', uid: 'T' });
});
