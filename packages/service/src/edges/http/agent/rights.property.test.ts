/** Compares the secrets that agents receive with the rules, over executors, authors, contents and secrets. */
import { randomUUIDv7 } from 'node:crypto';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
await service.deps.db.query('UPDATE teams SET max_concurrent_executions = 10000');
const team = await teamUidOf(service);
const post = async (path: string, key: string, body: object) => {
  const answer = await service.request<{ uid: string; key: string; run_id: string }>('POST', path, { key, body });
  if (answer.status >= 300) throw new Error(answer.text);
  return answer.body;
};

/** A table of the secrets that each author may use. The test does not use the service's code to compute these rights. */
const ofList = { Ada: ['ONE', 'TWO', 'MINE'], Bob: ['ONE', 'TWO', 'MINE'], with: ['ONE'], without: [] as string[] };
type Name = keyof typeof ofList;
const isPerson = (name: Name) => name === 'Ada' || name === 'Bob';
/** Ada and Bob each have a personal secret MINE. The team has a secret with the same name, which must never replace a personal secret. */
const mayUse = (who: Name, secret: string, owner: Name) =>
  secret === 'MINE' && isPerson(owner) ? who === owner : ofList[who].includes(secret);

const keys: Record<string, { readonly key: string }> = {
  Ada: await newPerson(service, team, 'admin'),
  Bob: await newPerson(service, team, 'member'),
};
const put = (name: string, scope: string, key: string) =>
  service.request('PUT', `/secrets/${name}`, { key, body: { value: `${name} ${randomUUIDv7()}`, scope } });
for (const name of ['ONE', 'TWO', 'MINE']) await put(name, 'team', service.key);
for (const name of ['Ada', 'Bob'] as const) await put('MINE', 'personal', keyOf(name));
for (const name of ['with', 'without'] as const) {
  const secrets = ofList[name].map((secret) => ({ name: secret }));
  const { uid } = await post('/agent/identities', service.key, { name, secrets });
  keys[name] = await post('/keys', service.key, { name, kind: 'agent', agent_uid: uid });
}
function keyOf(name: Name): string {
  return keys[name]?.key ?? '';
}

const references = (names: readonly string[]) => names.map((name) => ({ name }));
const environments = new Map<string, Promise<string>>();
/** Returns an environment of the author with secrets that the author may use; `acceptedBy` has accepted it. */
function environmentOf(author: Name, secrets: readonly string[], acceptedBy: Name | null): Promise<string> {
  const id = JSON.stringify([author, secrets, acceptedBy]);
  const make = async () => {
    const { uid } = await post('/agent/environments', keyOf(author), {
      config: { name: 'E', secrets: references(secrets) },
    });
    if (acceptedBy) await post('/acceptances', keyOf(acceptedBy), { kind: 'environment', uid, revision: 1 });
    return uid;
  };
  const made = environments.get(id) ?? make();
  environments.set(id, made);
  return made;
}

const name = fc.constantFrom<Name>('Ada', 'Bob', 'with', 'without');
const aCase = fc.record({
  executor: name,
  environment: fc.option(fc.record({ author: name, secrets: fc.subarray(['ONE', 'TWO']), isAccepted: fc.boolean() })),
  /** Author of the prompt. The executor reruns the run of this author. */
  prompt: fc.option(name, { freq: 2 }),
  named: fc.subarray(['ONE', 'TWO', 'MINE']),
});

test('an agent receives only secrets that may be used by its executor and by each author whom the executor did not accept', async () => {
  await fc.assert(
    fc.asyncProperty(aCase, async ({ executor, environment, prompt, named }) => {
      const ofEnvironment = (environment?.secrets ?? []).filter((secret) =>
        ofList[environment?.author ?? 'Ada'].includes(secret),
      );
      const accepts = environment?.isAccepted === true && isPerson(executor) && environment.author !== executor;
      const authors = [...(environment && !accepts ? [environment.author] : []), ...(prompt ? [prompt] : [])].filter(
        (author) => author !== executor,
      );
      const has = (secret: string, owner: Name) => [executor, ...authors].every((who) => mayUse(who, secret, owner));

      const config = {
        secrets: references(named),
        ...(environment
          ? { environment_id: await environmentOf(environment.author, ofEnvironment, accepts ? executor : null) }
          : {}),
      };
      const first = prompt && (await post('/agent/runs', keyOf(prompt), { prompt: 'a' })).run_id;
      const [path, body] = first
        ? [`/agent/runs/${first}/rerun`, { config }]
        : ['/agent/runs', { prompt: 'a', config }];
      const created = await service.request<{ run_id: string }>('POST', path, { key: keyOf(executor), body });
      // A run of an agent identity also requests the secrets in the identity's list.
      const asked = [...named, ...(isPerson(executor) ? [] : ofList[executor])];
      const isRefused = asked.some((secret) => !has(secret, executor));
      expect(created.status, created.text).toBe(isRefused ? 403 : 200);
      if (isRefused) return;
      const { runToken } = await service.claimRun(created.body.run_id);
      const resolve = '/harness-support/resolve-prompt';
      const task = await service.request<AgentTask>('POST', resolve, { key: runToken, body: {} });
      const received = (task.body.secrets ?? []).map((secret) => secret.name).sort();
      // An environment names secrets of the team.
      const granted = ofEnvironment.filter((secret) => has(secret, 'without'));
      expect(received).toEqual([...new Set([...asked, ...granted])].sort());
    }),
    { numRuns: 60 },
  );
});
