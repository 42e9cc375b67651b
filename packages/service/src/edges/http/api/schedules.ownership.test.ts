import type { RunItem } from '@runyard/contract/runs/runs';
import type { ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import type { AgentIdentity } from '@runyard/contract/team/identities';
import { describe, expect, test } from 'vitest';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { aSchedule, scheduleBase as base, testSchedules } from '../../../../test/schedules.ts';
import { openTestService } from '../../../../test/service.ts';
import { findUsableSecrets } from '../../../team/stored-secrets/find-usable.ts';
import { fireDueSchedules } from '../../../triggers/starts/times/fire.ts';

const service = await openTestService();
const { create, fires, makeDue } = testSchedules(service);
const team = await teamUidOf(service);
const owner = await newPerson(service, team, 'member');

const idsOf = async (key: string) => {
  const { body } = await service.request<{ schedules: ScheduledAgentItem[] }>('GET', base, { key });
  return body.schedules.map(({ id }) => id);
};
const runOf = async (id = '') => (await service.request<RunItem>('GET', `/agent/runs/${id}`)).body;
async function fireNow(id: string) {
  await makeDue(id);
  await fireDueSchedules(service.deps);
  return (await fires(id))[0];
}

describe('a personal schedule', () => {
  test('belongs to its person, and its runs act as this person', async () => {
    const schedule = await create({ team: false }, owner.key);
    expect(schedule.scope).toEqual({ type: 'User', uid: owner.uid });
    const body = { ...aSchedule, name: 'Changed' };
    const changed = await service.request('PUT', `${base}/${schedule.id}`, { key: owner.key, body });
    expect(changed.body).toMatchObject({ name: 'Changed', scope: { type: 'User', uid: owner.uid } });
    const fire = await fireNow(schedule.id);
    expect(await runOf(fire?.run_id)).toMatchObject({ creator: { uid: owner.uid }, executor: { uid: owner.uid } });
    const byHand = await service.request<{ run_id: string }>('POST', `${base}/${schedule.id}/run`, { key: owner.key });
    expect(await runOf(byHand.body.run_id)).toMatchObject({ executor: { uid: owner.uid } });
  });

  test('is hidden from other people of the team and from their agent keys', async () => {
    const schedule = await create({ team: false }, owner.key);
    const one = `${base}/${schedule.id}`;
    const others = [(await newPerson(service, team, 'member')).key, await service.newKey({ kind: 'agent' })];
    for (const key of [...others, service.otherKey]) {
      expect(await idsOf(key)).not.toContain(schedule.id);
      await service.problem(404, 'GET', one, { key });
      await service.problem(404, 'GET', `${one}/history`, { key });
      await service.problem(404, 'PUT', one, { key, body: aSchedule });
      await service.problem(404, 'DELETE', one, { key });
      for (const action of ['pause', 'resume', 'run']) await service.problem(404, 'POST', `${one}/${action}`, { key });
    }
    expect(await idsOf(owner.key)).toContain(schedule.id);
  });

  test('can be seen and deleted by an administrator, but not changed or started', async () => {
    const schedule = await create({ team: false }, owner.key);
    const one = `${base}/${schedule.id}`;
    const { key } = await newPerson(service, team, 'admin');
    expect(await idsOf(key)).toContain(schedule.id);
    await service.problem(404, 'PUT', one, { key, body: aSchedule });
    for (const action of ['pause', 'resume', 'run']) await service.problem(404, 'POST', `${one}/${action}`, { key });
    expect((await service.request('DELETE', one, { key })).status).toBe(200);
    await service.problem(404, 'GET', one, { key: owner.key });
  });

  test('is refused to agent keys, because they are not people', async () => {
    const key = await service.newKey({ kind: 'agent' });
    await service.problem(403, 'POST', base, { key, body: { ...aSchedule, team: false } });
  });

  test('starts no run after its person left the team', async () => {
    const person = await newPerson(service, team, 'member');
    const schedule = await create({ team: false }, person.key);
    await service.request('DELETE', `/teams/${team}/members/${person.uid}`);
    expect(await fireNow(schedule.id)).toMatchObject({ outcome: 'failed' });
  });
});

describe('a schedule of a person whom the identity provider has not confirmed in time', () => {
  test('starts no run and uses no secret of the person until the next sign-in', async () => {
    const { db } = service.deps;
    const person = await newPerson(service, team, 'member');
    const secret = { name: 'OWN_TOKEN', value: 'a-personal-value-1' };
    const put = { key: person.key, body: { value: secret.value, scope: 'personal' } };
    expect((await service.request('PUT', `/secrets/${secret.name}`, put)).status).toBe(200);
    const schedule = await create({ agent_config: { secrets: [{ name: secret.name }] } }, person.key);
    expect(await fireNow(schedule.id)).toMatchObject({ outcome: 'started' });
    await db.query(
      `INSERT INTO sign_on_identities (id, issuer, subject, user_id, vault_key_id, confirmed_until)
       SELECT gen_random_uuid(), 'https://id.example', uid, id, '', now() - interval '1 second' FROM users WHERE uid = $1`,
      [person.uid],
    );
    expect(await fireNow(schedule.id)).toMatchObject({ outcome: 'failed' });
    const executor = { teamId: service.teamId, actor: { kind: 'user', uid: person.uid } } as const;
    const usable = () =>
      findUsableSecrets(db, service.deps.vault, executor, { ofRun: [{ name: secret.name }], ofEnvironment: [] });
    expect(await usable()).toMatchObject({ kind: 'forbidden' });
    await db.query(`UPDATE sign_on_identities SET confirmed_until = now() + interval '1 hour'`);
    expect(await usable()).toMatchObject({ kind: 'ok' });
    expect(await fireNow(schedule.id)).toMatchObject({ outcome: 'started' });
  });
});

describe('a schedule with agent_uid', () => {
  const newIdentity = async () =>
    (await service.request<AgentIdentity>('POST', '/agent/identities', { body: { name: 'Bot' } })).body;

  test('creates runs that execute as the identity, until the identity is deleted', async () => {
    const identity = await newIdentity();
    const schedule = await create({ agent_uid: identity.uid }, owner.key);
    const fire = await fireNow(schedule.id);
    expect(await runOf(fire?.run_id)).toMatchObject({
      creator: { type: 'user', uid: owner.uid },
      executor: { type: 'service_account', uid: identity.uid },
    });
    await service.request('DELETE', `/agent/identities/${identity.uid}`);
    const reason = expect.stringContaining('agent_uid: there is no such agent identity');
    expect(await fireNow(schedule.id)).toMatchObject({ outcome: 'failed', reason });
  });

  test('starts no run for an agent key whose identity was deleted', async () => {
    const identity = await newIdentity();
    const body = { name: 'K', kind: 'agent', agent_uid: identity.uid };
    const { key } = (await service.request<{ key: string }>('POST', '/keys', { body })).body;
    const schedule = await create({}, key);
    expect(await fireNow(schedule.id)).toMatchObject({ outcome: 'started' });
    await service.request('DELETE', `/agent/identities/${identity.uid}`);
    const reason = expect.stringContaining('may no longer start runs of the team');
    expect(await fireNow(schedule.id)).toMatchObject({ outcome: 'failed', reason });
  });
});
