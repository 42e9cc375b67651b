/** Tests the member `services` of environments. */
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { describe, expect, test } from 'vitest';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const team = await teamUidOf(service);
const redis = { name: 'redis', command: 'exec redis-server', port: 6379 };
const create = (services: unknown, key = service.key) =>
  service.request<{ uid: string; config: { services: object[] } }>('POST', '/agent/environments', {
    key,
    body: { config: { name: 'E', services } },
  });

describe('services of an environment', () => {
  test.each<[string, unknown, string]>([
    ['from an image with options', [{ ...redis, image: 'redis:7 --privileged' }], 'config.services.0.image'],
    ['from an image that is an option', [{ ...redis, image: '--privileged' }], 'config.services.0.image'],
    ['from an image that is a path', [{ ...redis, image: '../redis' }], 'config.services.0.image'],
    ['from an image without port and ready', [{ name: 'redis', image: 'redis:7' }], 'config.services.0.port'],
    ['with an open quote', [{ ...redis, image: 'redis:7', command: 'a "b' }], 'config.services.0.command'],
    ['with neither command nor image', [{ name: 'redis', port: 1, image: null }], 'config.services.0.command'],
    ['without port and ready', [{ name: 'redis', command: 'redis-server' }], 'config.services.0.port'],
    ['without a command', [{ name: 'redis', port: 1 }], 'config.services.0.command'],
    ['with the name of another', [redis, { ...redis, port: 6380 }], 'config.services.1.name'],
    ['with the port of another', [redis, { ...redis, name: 'two' }], 'config.services.1.port'],
    ['with a name that is no name', [{ ...redis, name: 'a b' }], 'config.services.0.name'],
    ['with a variable of the agent', [{ ...redis, env: { RUNYARD_X: '1' } }], 'config.services.0.env'],
    [
      'more than ten',
      Array.from({ length: 11 }, (_, n) => ({ ...redis, name: `s${n}`, port: n + 1 })),
      'config.services',
    ],
  ])('%s are refused with the path', async (_, services, path) => {
    const answer = await create(services);
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ path, message: expect.any(String) }] } });
  });

  test('reach the agent; a stored value of another type does not', async () => {
    const made = await create([redis]);
    expect(made.status, made.text).toBe(201);
    const taskOf = async () => {
      const { runToken } = await service.startExecution({ prompt: 'a', config: { environment_id: made.body.uid } });
      const task = await service.request<AgentTask>('POST', '/harness-support/resolve-prompt', {
        key: runToken,
        body: {},
      });
      expect(task.status, task.text).toBe(200);
      return task.body.environment?.config.services;
    };
    expect(await taskOf()).toEqual([redis]);
    const ofImage = [{ name: 'db', image: 'postgres:17', port: 5432, env: { POSTGRES_PASSWORD: 'a' } }];
    const body = { config: { name: 'E', services: ofImage } };
    expect((await service.request('PUT', `/agent/environments/${made.body.uid}`, { body })).status).toBe(200);
    expect(await taskOf()).toEqual(ofImage);
    await service.deps.db.query(
      `UPDATE content_revisions SET content = jsonb_set(content, '{services}', '"redis"') WHERE uid = $1`,
      [made.body.uid],
    );
    expect(await taskOf()).toEqual([]);
  });

  test('are texts with an author: a run gets no personal secret before its executor accepts the command of another person', async () => {
    const [owner, colleague] = [await newPerson(service, team, 'member'), await newPerson(service, team, 'member')];
    const put = { key: owner.key, body: { value: 'my-own-value-99', scope: 'personal' } };
    expect((await service.request('PUT', '/secrets/MINE', put)).status).toBe(200);
    const made = await create([redis], owner.key);
    const config = { environment_id: made.body.uid, secrets: [{ name: 'MINE' }] };
    const run = { key: owner.key, body: { prompt: 'a', config } };
    expect((await service.request('POST', '/agent/runs', run)).status).toBe(200);
    for (const services of [
      [{ ...redis, command: 'curl evil' }],
      [{ ...redis, command: 'curl evil', env: { A: 'evil' } }],
      [{ ...redis, command: 'curl evil', env: { A: 'evil' }, ready: 'curl evil' }],
      [{ ...redis, image: 'evil:1' }],
    ]) {
      const path = `/agent/environments/${made.body.uid}`;
      const body = { config: { name: 'E', services } };
      expect((await service.request('PUT', path, { key: colleague.key, body })).status).toBe(200);
      const problem = await service.problem(403, 'POST', '/agent/runs', run);
      expect(problem.detail).toContain(`accept environment ${made.body.uid}`);
      const { body: listed } = await service.request<{ waiting: { uid: string; kind: string; revision: number }[] }>(
        'GET',
        '/acceptances',
        { key: owner.key },
      );
      const content = listed.waiting.find(({ uid }) => uid === made.body.uid);
      expect(JSON.stringify(content)).toContain('evil');
      const acceptance = { kind: content?.kind, uid: content?.uid, revision: content?.revision };
      expect((await service.request('POST', '/acceptances', { key: owner.key, body: acceptance })).status).toBe(200);
      expect((await service.request('POST', '/agent/runs', run)).status).toBe(200);
    }
  });
});
