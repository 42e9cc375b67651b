import { beforeEach, describe, expect, test } from 'vitest';
import { baseFiles, testDefinitions, toBody } from '../../../../test/definitions.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { setSecret, faultsOf, webhooks, open } = testDefinitions(service);

let path = '';
beforeEach(async () => {
  path = await open();
});

describe('the rights for an apply', () => {
  test.each(['viewer', 'agent', 'other team', 'run token'] as const)(
    'a definition is not applied by: %s',
    async (who) => {
      const keys = {
        viewer: () => service.newKey({ role: 'viewer' }),
        agent: () => service.newKey({ kind: 'agent' }),
        'other team': async () => service.otherKey,
        'run token': async () => (await service.startExecution()).runToken,
      };
      const key = await keys[who]();
      const expected = { viewer: 403, agent: 403, 'other team': 404, 'run token': 401 }[who];
      const answer = await service.request('PUT', `${path}/definition`, { body: toBody(baseFiles), key });
      expect(answer.status).toBe(expected);
      expect(await webhooks()).toEqual([]);
    },
  );

  test('a personal secret of the caller is not used as a secret of the team', async () => {
    await setSecret('MINE', 'a-secret-of-mine', 'personal');
    expect(await faultsOf({ ...baseFiles, 'webhooks/alerts.yaml': 'secretName: MINE\n' })).toEqual([
      expect.stringContaining('the team has no secret MINE'),
    ]);
  });
});
