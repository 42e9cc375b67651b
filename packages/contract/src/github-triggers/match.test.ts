import { createRequire } from 'node:module';
import { describe, expect, test } from 'vitest';
import { type GithubEvent, type GithubFilter, githubEvents, isNotInPayload } from './catalogue.ts';
import { matchGithubTrigger } from './match.ts';
import { mentionsIn } from './mentions.ts';
import { matchesPathPattern } from './path-pattern.ts';
import { readGithubDelivery } from './read-delivery.ts';

interface Recorded {
  readonly name: string;
  readonly examples: readonly Record<string, unknown>[];
}
/** Payloads that people recorded from GitHub. */
const recorded: readonly Recorded[] = createRequire(import.meta.url)('@octokit/webhooks-examples');
const deliveries = recorded.flatMap(({ name, examples }) => examples.map((payload) => ({ name, payload })));

function example(name: string, action?: string): Record<string, unknown> {
  const found = deliveries.find((each) => each.name === name && (!action || each.payload.action === action));
  if (!found) throw new Error(`no example of ${name} ${action}`);
  return found.payload;
}

test('reads every recorded payload of GitHub, and gives all facts that a filter of the event may ask for', () => {
  const seen = new Set<string>();
  for (const { name, payload } of deliveries)
    for (const { event, facts } of readGithubDelivery(name, payload)) {
      seen.add(event);
      const missing = githubEvents[event].filter((key) => !(key in facts));
      expect(missing).toEqual(githubEvents[event].filter((key) => isNotInPayload(event, key)));
      expect(facts.repos).toEqual([expect.stringMatching(/^[\w.-]+\/[\w.-]+$/)]);
    }
  expect(seen.size).toBeGreaterThanOrEqual(14);
});

const decide = (name: string, payload: unknown, event: GithubEvent, filter: GithubFilter = {}): boolean =>
  matchGithubTrigger(readGithubDelivery(name, payload), { event, filter }).would_trigger;

describe('a push', () => {
  const payload = {
    ...example('push'),
    deleted: false,
    ref: 'refs/heads/main',
    commits: [{ added: ['src/a/b.ts'], modified: ['README.md'], removed: [] }],
  };
  const repo = (payload as unknown as { repository: { full_name: string } }).repository.full_name;
  test.each<[string, GithubFilter, boolean]>([
    ['without a filter', {}, true],
    ['of the repository, in any case', { repos: { in: [repo.toUpperCase()] } }, true],
    ['of another repository', { repos: { in: ['a/b'] } }, false],
    ['to the branch', { branches: { in: ['main'] } }, true],
    ['to the branch as ref', { branches: { in: ['refs/heads/main'] } }, true],
    ['to the branch in another case', { branches: { in: ['Main'] } }, false],
    ['to an excluded branch', { branches: { not_in: ['main'] } }, false],
    ['with the path', { paths: { in: ['README.md'] } }, true],
    ['with a path of the pattern', { paths: { in: ['src/**'] } }, true],
    ['without a path of the pattern', { paths: { in: ['docs/**', '*.ts'] } }, false],
    ['with an excluded path', { paths: { not_in: ['**/*.md'] } }, false],
    ['where one member does not match', { branches: { in: ['main'] }, repos: { not_in: [repo] } }, false],
  ])('%s: %j is %s', (_name, filter, expected) => {
    expect(decide('push', payload, 'push', filter)).toBe(expected);
  });

  test('that deletes a branch is no event', () => {
    expect(readGithubDelivery('push', { ...payload, deleted: true })).toEqual([]);
  });
});

describe('a pull request', () => {
  const opened = example('pull_request', 'opened');
  const change = (members: object, action = 'opened') => ({
    ...opened,
    action,
    pull_request: { ...(opened.pull_request as object), ...members },
  });

  test('that is merged is not closed, and the other way round', () => {
    expect(readGithubDelivery('pull_request', change({ merged: true }, 'closed')).map(({ event }) => event)).toEqual([
      'pull_request_merged',
    ]);
    expect(readGithubDelivery('pull_request', change({ merged: false }, 'closed')).map(({ event }) => event)).toEqual([
      'pull_request_closed',
    ]);
  });

  test('matches labels and authors without case, and base branches', () => {
    const payload = change({ labels: [{ name: 'Ready' }], user: { login: 'Octo' }, base: { ref: 'main' }, number: 7 });
    const filter = {
      labels: { in: ['ready'], not_in: ['wip'] },
      authors: { in: ['octo'] },
      base_branches: { in: ['main'] },
      pr_numbers: { in: [7] },
    };
    expect(decide('pull_request', payload, 'pull_request_opened', filter)).toBe(true);
    expect(decide('pull_request', payload, 'pull_request_opened', { labels: { not_in: ['READY'] } })).toBe(false);
  });

  test('never matches paths, because the payload does not have them, and says so', () => {
    for (const paths of [{ in: ['src/**'] }, { not_in: ['docs/**'] }])
      expect(
        matchGithubTrigger(readGithubDelivery('pull_request', opened), {
          event: 'pull_request_opened',
          filter: { paths },
        }),
      ).toMatchObject({
        would_trigger: false,
        checks: [
          { check: 'event', passed: true },
          { path: 'paths', reason: expect.stringContaining('does not say it') },
        ],
      });
  });

  test('is a mention too when its text mentions somebody, unless a bot wrote it', () => {
    const payload = change({ body: 'Please look, @Factory' });
    expect(decide('pull_request', payload, 'pull_request_mentioned', { mentioned: { in: ['@factory'] } })).toBe(true);
    expect(decide('pull_request', { ...payload, sender: { type: 'Bot' } }, 'pull_request_mentioned')).toBe(false);
  });
});

test('explains with the found and the wanted values', () => {
  const payload = { ...example('issues', 'opened') };
  expect(matchGithubTrigger(readGithubDelivery('issues', payload), { event: 'push' }).checks).toEqual([
    { check: 'event', passed: false, reason: expect.stringContaining('issue_created') },
  ]);
  const { checks } = matchGithubTrigger(readGithubDelivery('issues', payload), {
    event: 'issue_created',
    filter: { authors: { in: ['nobody'] } },
  });
  expect(checks[1]).toEqual({
    check: 'in',
    path: 'authors',
    passed: false,
    reason: expect.stringMatching(/^found ".+"; allowed: "nobody"$/),
  });
});

test.each([
  null,
  7,
  'x',
  [],
  {},
  { action: 'opened' },
  { issue: null },
  { commits: [null, 7, { added: [1] }] },
  JSON.parse('{"__proto__":{"action":"opened"}}'),
])('reads %j without an exception', (payload) => {
  for (const name of [
    'push',
    'issues',
    'issue_comment',
    'pull_request',
    'pull_request_review',
    'check_suite',
    'workflow_run',
    '__proto__',
    '',
  ])
    expect(Array.isArray(readGithubDelivery(name, payload))).toBe(true);
});

test.each<[string, string[]]>([
  ['@one and @Two, (@org/team).', ['one', 'two', 'org/team']],
  ['mail a@b.c, path x/@y, @@z', []],
  ['`@code` and\n```\n@block\n```\n@real', ['real']],
  ['```\n@unclosed', []],
  ['@a @a', ['a']],
])('finds in %j the mentions %j', (text, names) => {
  expect(mentionsIn(text)).toEqual(names);
});

test.each<[string, string, boolean]>([
  ['**', 'a/b', true],
  ['src/**', 'src/a/b.ts', true],
  ['src/**', 'srcs/a', false],
  ['**/*.ts', 'a.ts', true],
  ['**/*.ts', 'a/b/c.ts', true],
  ['*.ts', 'a/b.ts', false],
  ['a/?.ts', 'a/b.ts', true],
  ['a/**/z', 'a/z', true],
  ['a/**/z', 'a/b/c/z', true],
  ['a.b', 'axb', false],
])('the pattern %s on %s: %s', (pattern, path, expected) => {
  expect(matchesPathPattern(pattern, path, { left: 10_000 })).toBe(expected);
});

test('hostile patterns, paths and texts end soon', () => {
  const steps = { left: 2_000_000 };
  expect(matchesPathPattern('*b'.repeat(150), 'a'.repeat(4_000), steps)).toBe(false);
  expect(matchesPathPattern('**/'.repeat(100), 'a/'.repeat(2_000), { left: 2_000_000 })).toBeDefined();
  for (const part of ['`', '```\n', '@', '@a', '~~~\n', '@a/'])
    expect(mentionsIn(part.repeat(70_000 / part.length)).length).toBeLessThanOrEqual(100);
});
