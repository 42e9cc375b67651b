/** Tests that agent keys cannot change environments and schedules of people. */
import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const agentKey = await service.newKey({ kind: 'agent' });

const things = [
  {
    name: 'an environment',
    path: '/agent/environments',
    body: { config: { name: 'E', setup_commands: ['true'] } },
    id: 'uid',
  },
  {
    name: 'a schedule',
    path: '/agent/schedules',
    body: { name: 'S', cron_schedule: '@yearly', prompt: 'a', enabled: true },
    id: 'id',
  },
] as const;
const changes = [
  ...things.flatMap((thing) => [
    { ...thing, verb: 'replace', method: 'PUT', suffix: '' },
    { ...thing, verb: 'delete', method: 'DELETE', suffix: '' },
  ]),
  ...['pause', 'resume'].map((verb) => ({ ...things[1], verb, method: 'POST', suffix: `/${verb}` })),
];

test.each(changes)('an agent key cannot $verb $name of a person, but can $verb $name of an agent', async (change) => {
  const { path, body, id, method, suffix } = change;
  const make = async (key: string) => (await service.ok<Record<string, string>>('POST', path, { key, body }))[id] ?? '';
  const asked = (uid: string, key: string) =>
    service.request(method, `${path}/${uid}${suffix}`, { key, ...(method === 'PUT' ? { body } : {}) });
  const ofPerson = await make(service.key);
  const refused = await asked(ofPerson, agentKey);
  expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('A person made this')]);
  expect((await asked(await make(agentKey), agentKey)).status).toBe(200);
  expect((await asked(ofPerson, await service.newKey({ role: 'member' }))).status, 'another person').toBe(200);
});
