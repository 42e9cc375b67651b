import { expect, test } from 'vitest';
import { groupsIn } from './groups.ts';

test.each([
  ['a list of texts', { groups: ['a', '/b/c'] }, 'groups', ['a', '/b/c']],
  ['an empty list', { groups: [] }, 'groups', []],
  ['one text', { groups: 'a' }, 'groups', ['a']],
  ['a list in a text', { groups: '["a", "b"]' }, 'groups', ['a', 'b']],
  [
    'a list of objects',
    { groups: [{ value: '1', display: 'a' }, { id: '2', name: 'a' }, { name: 'c' }] },
    'groups',
    ['1', '2', 'c'],
  ],
  ['an object of roles', { 'urn:zitadel:roles': { makers: { 1: 'acme' } } }, 'urn:zitadel:roles', ['makers']],
  ['a path', { realm_access: { roles: ['makers'] } }, 'realm_access.roles', ['makers']],
  ['a name with dots', { 'https://acme.example/groups': ['a'] }, 'https://acme.example/groups', ['a']],
])('%s names the groups', (_, claims, name, names) => {
  expect(groupsIn(claims, name)).toEqual({ kind: 'groups', names });
});

test.each([
  ['no claim', {}, 'groups', 'no claim groups'],
  ['null', { groups: null }, 'groups', 'no claim groups'],
  ['a number', { groups: 7 }, 'groups', 'is a number'],
  ['an announced claim', { _claim_names: { groups: 'src1' } }, 'groups', 'too many groups'],
  ['a path without its end', { realm_access: {} }, 'realm_access.roles', 'no claim'],
  ['a member of every object', {}, 'constructor.name', 'no claim'],
])('%s does not say in which groups the person is', (_, claims, name, why) => {
  expect(groupsIn(claims, name)).toEqual({ kind: 'unknown', why: expect.stringContaining(why) });
});
