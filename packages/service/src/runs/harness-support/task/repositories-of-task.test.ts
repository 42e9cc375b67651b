import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { RunContent } from '../../../team/access/contents/content.ts';
import type { RepositoryAnswer } from '../../../team/code-hosts/ask-repositories.ts';
import type { GrantedSecrets } from './grant-secrets.ts';
import type { TaskRow } from './read-task-row.ts';
import { nameKeptObjects } from './repositories-of-task.ts';

const signing = {
  nameOf: (purpose: string, text: string) =>
    createHmac('sha256', 'key').update(purpose).update(text).digest('base64url'),
};
const repository = { owner: 'acme', repo: 'site' };
const head = { commit: 'a'.repeat(40), branch: 'main' };
const readable = { kind: 'readable', repository, url: 'https://host/acme/site.git', credentialId: 'c1', head } as const;
const config = { github_repos: [repository], setup_commands: ['make'], variables: { A: '1', B: '2' } };

const author = { kind: 'user', uid: 'u1' } as const;
const content: RunContent = { kind: 'environment', uid: 'e1', revision: 1, author, accepted: true };
const runner = { runner_config: { docker_image: 'node:24', setup_commands: ['true'] } };

interface Change {
  readonly team?: string;
  readonly row?: Partial<TaskRow>;
  readonly config?: object;
  readonly answers?: readonly RepositoryAnswer[];
  readonly setupSecrets?: GrantedSecrets['setupSecrets'];
}

const secret = { name: 'A', variable: 'A', as: 'variable', value: 'value of A' } as const;

function names({ team = 't1', row = {}, config: changed = {}, answers = [readable], setupSecrets = [] }: Change = {}) {
  const base = {
    config: {},
    contents: [content],
    executor_kind: 'user',
    executor_uid: 'u1',
    environment_uid: 'e1',
    environment_config: { ...config, ...changed },
  };
  const named = nameKeptObjects(signing, team, { ...base, ...row } as TaskRow, answers, { secrets: [], setupSecrets });
  return {
    reason: named.prepared.not_prepared,
    prepared: named.prepared.prepared_workspace?.name,
    mirror: named.mirrorOf(repository).mirror,
  };
}

describe("the names of objects that runs store in a worker's cache", () => {
  test('are the same for the same setup, and a worker accepts these names', () => {
    expect(names()).toEqual(names({ config: { variables: { B: '2', A: '1' }, description: 'new', name: 'new' } }));
    expect(names().prepared).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(names().mirror).toMatch(/^[A-Za-z0-9_-]{43}$/);
  });

  test.each<[string, Change, { mirror: boolean }]>([
    ['team', { team: 't2' }, { mirror: false }],
    ['credential', { answers: [{ ...readable, credentialId: 'c2' }] }, { mirror: false }],
    ['missing credential', { answers: [{ ...readable, credentialId: null }] }, { mirror: false }],
    ['address', { answers: [{ ...readable, url: 'https://other/acme/site.git' }] }, { mirror: false }],
    ['executor', { row: { executor_uid: 'u2' } }, { mirror: true }],
    ['kind of executor', { row: { executor_kind: 'service_account' } }, { mirror: true }],
    ['environment', { row: { environment_uid: 'e2' } }, { mirror: true }],
    ['revision of the environment', { row: { contents: [{ ...content, revision: 2 }] } }, { mirror: true }],
    [
      'author of the environment',
      { row: { contents: [{ ...content, author: null, accepted: false }] } },
      { mirror: true },
    ],
    ['commit', { answers: [{ ...readable, head: { ...head, commit: 'b'.repeat(40) } }] }, { mirror: true }],
    ['branch', { answers: [{ ...readable, head: { ...head, branch: 'next' } }] }, { mirror: true }],
    ['setup command', { config: { setup_commands: ['make', 'true'] } }, { mirror: true }],
    ['secret of the setup', { setupSecrets: [secret] }, { mirror: true }],
    ['value of a variable', { config: { variables: { A: '1', B: '3' } } }, { mirror: true }],
  ])('differ for another %s', (_, change, same) => {
    expect(names(change).prepared).toMatch(/^.{43}$/);
    expect(names(change).prepared).not.toBe(names().prepared);
    expect(names(change).mirror === names().mirror).toBe(same.mirror);
  });

  test('depend on the author of the prompt only if its configuration has setup commands', () => {
    const contents: RunContent[] = [content, { kind: 'prompt', author: null, accepted: false }];
    expect(names({ row: { contents } }).prepared).toBe(names().prepared);
    expect(names({ row: { contents, config: runner } }).prepared).not.toBe(names({ row: { config: runner } }).prepared);
  });

  test('depend on the value, the variable and the form of each secret of the setup', () => {
    const changed = [{ value: 'other' }, { variable: 'B' }, { as: 'file' as const }].map((change) => ({
      ...secret,
      ...change,
    }));
    const all = [secret, ...changed].map((each) => names({ setupSecrets: [each] }).prepared);
    expect(new Set(all).size).toBe(4);
  });

  test('include a reason, with the names of the secrets, if the agent gets secrets', () => {
    const of = (secrets: object[]) => names({ row: { config: { secrets } as TaskRow['config'] } });
    expect(of([{ name: 'S' }, { name: 'T', phase: 'setup' }])).toMatchObject({
      prepared: undefined,
      reason: expect.stringContaining('the agent gets secrets (S)'),
    });
    expect(of([{ name: 'T', phase: 'setup' }]).prepared).toBe(names().prepared);
  });

  test.each<[string, Change]>([
    ['has secrets', { row: { config: { secrets: [{ name: 'S' }] } } }],
    ['is in an environment with secrets', { config: { secrets: [{ name: 'S' }] } }],
    ['has a repository about which nothing is known', { answers: [{ kind: 'unknown', repository }] }],
    ['has an empty repository', { answers: [{ ...readable, head: null }] }],
    ['has no environment', { row: { environment_uid: null, environment_config: null }, answers: [] }],
    ['has nothing to set up', { config: { github_repos: [], setup_commands: [] }, answers: [] }],
  ])('include no prepared workspace for a run that %s', (_, change) => {
    expect(names(change).prepared).toBeUndefined();
  });
});
