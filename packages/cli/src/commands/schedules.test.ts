import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { openTestService } from '../../../service/test/service.ts';
import { connect } from '../api.ts';
import { createContext } from '../context.ts';
import { idOf } from '../named.ts';
import { createSchedule, updateSchedule } from './schedules.ts';

const service = await openTestService();
const folder = mkdtempSync(path.join(tmpdir(), 'runyard-schedules-'));
afterAll(() => rmSync(folder, { recursive: true }));
const context = {
  ...createContext({ RUNYARD_BASE_URL: service.baseUrl, RUNYARD_API_KEY: service.key }),
  out: () => {},
  report: () => {},
};

test('the commands for schedules read the prompt from a file, and accept the names of an environment and of a schedule', async () => {
  const client = connect(context);
  const { uid } = await client.createEnvironment({ body: { config: { name: 'Build' } } });
  const file = path.join(folder, 'prompt.md');
  writeFileSync(file, 'Look at the builds.\n');
  const options = { name: 'nightly', cron: '@daily', environment: 'Build' };
  await createSchedule(context, file, options);
  const scheduleId = await idOf.schedule(client, 'nightly');
  const read = () => client.getSchedule({ params: { scheduleId } });
  expect(await read()).toMatchObject({ prompt: 'Look at the builds.\n', agent_config: { environment_id: uid } });
  await expect(createSchedule(context, './typo.md', options)).rejects.toThrow('there is no file ./typo.md');
  writeFileSync(file, 'Look again.\n');
  await updateSchedule(context, scheduleId, { prompt: file });
  expect((await read()).prompt).toBe('Look again.\n');
  await createSchedule(context, 'Another.', { ...options, name: 'nightly' });
  await expect(idOf.schedule(client, 'nightly')).rejects.toThrow(`several schedules are called "nightly"`);
});

test('the commands for schedules have the options of run, and an update keeps all other members', async () => {
  const client = connect(context);
  const config = path.join(folder, 'config.json');
  writeFileSync(config, JSON.stringify({ base_prompt: 'Be short.', model_id: 'local/other' }));
  const options = { name: 'full', cron: '@daily', mode: 'plan', metadata: ['a=b'], config, model: 'runbook' } as const;
  await createSchedule(context, 'Look.', { ...options, ask: ['push'], idle: '2', maxTurns: '5', paused: true });
  const scheduleId = await idOf.schedule(client, 'full');
  const read = () => client.getSchedule({ params: { scheduleId } });
  const expected = {
    base_prompt: 'Be short.',
    model_id: 'runbook',
    approval_policy: 'ask',
    approval_rules: [{ push: '*' }],
    idle_timeout_minutes: 2,
    max_turns: 5,
  };
  expect(await read()).toMatchObject({ mode: 'plan', metadata: { a: 'b' }, enabled: false, agent_config: expected });
  await updateSchedule(context, scheduleId, { maxTurns: '6', mode: 'normal' });
  expect(await read()).toMatchObject({
    mode: 'normal',
    metadata: { a: 'b' },
    enabled: false,
    agent_config: { ...expected, max_turns: 6 },
  });
});
