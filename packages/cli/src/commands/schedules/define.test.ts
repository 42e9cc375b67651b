import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { openTestService } from '../../../../service/test/service.ts';
import { runRow } from '../../../test/run-row.ts';
import { createContext } from '../../context/context.ts';
import { connect } from '../../service/connect.ts';
import { idOf } from '../../service/named.ts';
import { schedules } from './schedules.ts';

const service = await openTestService();
const folder = newFolder();
const context = {
  ...createContext({ RUNYARD_BASE_URL: service.baseUrl, RUNYARD_API_KEY: service.key }),
  out: () => {},
  report: () => {},
};

const run = (...words: string[]) => runRow(schedules, context, ...words);

test('the commands for schedules read the prompt from a file, and accept the names of an environment and of a schedule', async () => {
  const client = connect(context);
  const { uid } = await client.createEnvironment({ body: { config: { name: 'Build' } } });
  const file = path.join(folder, 'prompt.md');
  writeFileSync(file, 'Look at the builds.\n');
  const options = ['--name', 'nightly', '--cron', '@daily', '--environment', 'Build'];
  await run('create', file, ...options);
  const scheduleId = await idOf.schedule(client, 'nightly');
  const read = () => client.getSchedule({ params: { scheduleId } });
  expect(await read()).toMatchObject({ prompt: 'Look at the builds.\n', agent_config: { environment_id: uid } });
  await expect(run('create', './typo.md', ...options)).rejects.toThrow('there is no file ./typo.md');
  writeFileSync(file, 'Look again.\n');
  await run('update', scheduleId, '--prompt', file);
  expect((await read()).prompt).toBe('Look again.\n');
  await run('create', 'Another.', ...options);
  await expect(idOf.schedule(client, 'nightly')).rejects.toThrow(`several schedules are called "nightly"`);
});

test('the commands for schedules have the options of run, and an update keeps all other members', async () => {
  const client = connect(context);
  const config = path.join(folder, 'config.json');
  writeFileSync(config, JSON.stringify({ base_prompt: 'Be short.', model_id: 'local/other' }));
  const options = ['--name', 'full', '--cron', '@daily', '--mode', 'plan', '--metadata', 'a=b', '--paused'];
  const ofRuns = ['--config', config, '--model', 'runbook', '--ask', 'push', '--idle', '2', '--max-turns', '5'];
  await run('create', 'Look.', ...options, ...ofRuns);
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
  await run('update', scheduleId, '--max-turns', '6', '--mode', 'normal');
  expect(await read()).toMatchObject({
    mode: 'normal',
    metadata: { a: 'b' },
    enabled: false,
    agent_config: { ...expected, max_turns: 6 },
  });
});
