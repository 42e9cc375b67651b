import { matchesPattern } from '@runyard/contract/wire/matches-pattern';
import { describe, expect, it } from 'vitest';
import { decidePush } from './decide.ts';

const none = '0'.repeat(40);
const a = 'a'.repeat(40);
const b = 'b'.repeat(40);
const facts = {
  hasOptions: false,
  protectedBranches: ['HEAD'],
  followedBranches: [],
  defaultBranch: 'main',
  aliases: new Map(),
  own: new Map(),
  commits: new Map(),
};

describe('a pattern of branches', () => {
  it.each([
    ['main', 'main', true],
    ['main', 'MAIN', true],
    ['main', 'main2', false],
    ['release/*', 'release/1/2', true],
    ['release/*', 'release', false],
    ['*-stable', 'v1-stable', true],
    ['a*a', 'a', false],
    ['a*b*c', 'a1b2c', true],
    ['a*b*c', 'acb', false],
    ['*', 'anything', true],
    ['a**c', 'abc', true],
    ['caf\u00e9', 'cafe\u0301', true],
    ['a.c', 'abc', false],
  ])('%j matches the branch %j: %s', (pattern, name, expected) => {
    expect(matchesPattern(pattern, name)).toBe(expected);
  });

  it('is compared with a long name in linear time, even if it has many stars', () => {
    expect(matchesPattern(`${'*a'.repeat(100)}b`, 'a'.repeat(250))).toBe(false);
  });
});

describe('a branch name that misleads git or people', () => {
  it.each([
    ['HEAD', 'a name of git itself'],
    ['head', 'a name of git itself'],
    ['FETCH_HEAD', 'a name of git itself'],
    ['@', 'a name of git itself'],
    ['stash', 'a name of git itself'],
    ['refs/heads/main', 'from the branch heads/main: choose a name that does not begin with refs/'],
    ['heads/main', 'from the branch main'],
    ['Tags/v1', 'from the branch v1'],
    ['remotes/origin/main', 'from the branch origin/main'],
    ['origin/main', 'from the branch main'],
    [a, 'the id of a commit'],
    ['-f', 'as an option'],
    ['main\u202e', 'invisible'],
    ['ma\u200bin', 'invisible'],
    ['ma\u00adin', 'invisible'],
    ['m\u0430in', 'looks like main, which is protected'],
    ['ma1n', undefined],
    ['mаіn', 'looks like main'],
    ['\uff4dain', 'looks like main'],
    ['má\u0456n', 'looks like main'],
    ['re1ease/2', 'looks like release/*'],
    ['rеlease/2', 'looks like release/*'],
    ['feature/origin/x', undefined],
    ['headline', undefined],
    ['übung', undefined],
    ['ветка', undefined],
    ['機能/x', undefined],
  ])('%j is refused with the reason %j (undefined: it is allowed)', (branch, reason) => {
    const ref = `refs/heads/${branch}`;
    const protectedBranches = ['HEAD', 'release/*'];
    const refusals = decidePush({ ...facts, protectedBranches, commands: [{ from: none, to: a, ref }] });
    if (reason === undefined) expect(refusals.size).toBe(0);
    else expect(refusals.get(ref)).toContain(reason);
  });

  it('is refused even if no branch is protected, except if it only looks like the name of another branch', () => {
    const refusalsOf = (ref: string) =>
      decidePush({ ...facts, protectedBranches: [], commands: [{ from: none, to: a, ref }] }).size;
    expect(['refs/heads/HEAD', 'refs/heads/refs/heads/main', 'refs/heads/m\u0430in'].map(refusalsOf)).toEqual([
      1, 1, 0,
    ]);
  });
});

describe('the decision about a push', () => {
  it.each([
    ['a new branch', { from: none, to: a, ref: 'refs/heads/x' }, {}, undefined],
    ['the default branch', { from: a, to: b, ref: 'refs/heads/main' }, {}, 'protected as the default branch'],
    ['the default branch in other case', { from: none, to: b, ref: 'refs/heads/Main' }, {}, 'protected'],
    [
      'a repository without branches',
      { from: none, to: a, ref: 'refs/heads/main' },
      { defaultBranch: null },
      undefined,
    ],
    [
      'another name of the default branch',
      { from: a, to: b, ref: 'refs/heads/x' },
      { aliases: new Map([['x', 'main']]), own: new Map([['x', a]]) },
      'another name of main, which is protected',
    ],
    [
      'another name of a branch that is not protected',
      { from: a, to: b, ref: 'refs/heads/x' },
      { aliases: new Map([['x', 'y']]), commits: new Map([[b, [a]]]) },
      undefined,
    ],
    [
      'a followed branch',
      { from: none, to: a, ref: 'refs/heads/Live' },
      { followedBranches: ['live'] },
      'a factory takes',
    ],
    [
      'the followed default branch that the environment allows',
      { from: a, to: b, ref: 'refs/heads/main' },
      { protectedBranches: [], followedBranches: [null], own: new Map([['main', a]]) },
      'a factory takes its definition from main',
    ],
    [
      'another name of a followed branch',
      { from: a, to: b, ref: 'refs/heads/x' },
      { followedBranches: ['live'], aliases: new Map([['x', 'live']]) },
      'a factory takes',
    ],
    [
      'the branch behind a followed name',
      { from: a, to: b, ref: 'refs/heads/x' },
      { followedBranches: ['live'], aliases: new Map([['live', 'x']]) },
      'a factory takes',
    ],
    [
      'a branch beside a followed one',
      { from: none, to: a, ref: 'refs/heads/live2' },
      { followedBranches: ['live'] },
      undefined,
    ],
    ['an empty list', { from: none, to: a, ref: 'refs/heads/main' }, { protectedBranches: [] }, undefined],
    ['a branch of others without proof', { from: a, to: b, ref: 'refs/heads/x' }, {}, 'may drop commits'],
    [
      'a branch of others, on top',
      { from: a, to: b, ref: 'refs/heads/x' },
      { commits: new Map([[b, [a]]]) },
      undefined,
    ],
    ['a branch of its own', { from: a, to: b, ref: 'refs/heads/x' }, { own: new Map([['x', a]]) }, undefined],
    [
      'a branch that others pushed to since',
      { from: a, to: b, ref: 'refs/heads/x' },
      { own: new Map([['x', b]]) },
      'may drop',
    ],
    [
      'a deletion of its own',
      { from: a, to: none, ref: 'refs/heads/x' },
      { own: new Map([['x', a]]) },
      'delete no branches',
    ],
    ['a tag', { from: none, to: a, ref: 'refs/tags/v1' }, {}, 'branches only'],
    ['options for the code host', { from: none, to: a, ref: 'refs/heads/x' }, { hasOptions: true }, 'push without -o'],
    ['heads without a slash', { from: none, to: a, ref: 'refs/headsmain' }, {}, 'branches only'],
  ])('is right for %s', (_name, command, changes, expected) => {
    const reason = decidePush({ ...facts, ...changes, commands: [command] }).get(command.ref);
    if (expected === undefined) expect(reason).toBeUndefined();
    else expect(reason).toContain(expected);
  });

  it('refuses all refs of a push if one of them is refused', () => {
    const commands = [
      { from: none, to: a, ref: 'refs/heads/x' },
      { from: none, to: a, ref: 'refs/tags/v1' },
    ];
    expect([...decidePush({ ...facts, commands }).keys()]).toEqual(['refs/heads/x', 'refs/tags/v1']);
  });
});
