import { expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { newPerson, type Person, teamUidOf } from '../../../../service/test/people.ts';
import { openTestService } from '../../../../service/test/service.ts';
import { runRow } from '../../../test/run-row.ts';
import { type Context, createContext } from '../../context/context.ts';
import { schedules } from '../schedules/schedules.ts';
import { acceptAll, listWaiting, preview } from './accept.ts';

/** Returns what the command prints and reports. */
async function outputOf(command: (context: Context) => Promise<void>, { key }: Person = ada): Promise<string> {
  const printed: string[] = [];
  const env = { RUNYARD_BASE_URL: service.baseUrl, RUNYARD_API_KEY: key, RUNYARD_DATA_DIR: folder };
  const context = createContext(env);
  const write = (text: string) => void printed.push(text);
  await command({ ...context, out: write, report: write });
  return printed.join('\n');
}
const send = async (method: string, at: string, { key }: Person, body: object) =>
  await service.ok<{ uid: string; id: string }>(method, at, { key, body });
const commands = (...setup_commands: string[]) => ({ config: { name: 'E', setup_commands } });

const service = await openTestService();
const folder = newFolder();
const team = await teamUidOf(service);
const ada = await newPerson(service, team, 'admin');
const bob = await newPerson(service, team, 'member');
await send('PUT', '/secrets/MINE', ada, { value: 'a personal value', scope: 'personal' });

test('accept --all accepts the revisions of the preview, and no revision that was written after it', async () => {
  await expect(outputOf((context) => acceptAll(context, { yes: true }))).rejects.toThrow(
    'first run: bin/runyard accept --preview',
  );
  const { uid: kept } = await send('POST', '/agent/environments', bob, commands('make'));
  const { uid: changed } = await send('POST', '/agent/environments', bob, commands('make'));
  const { id } = await send('POST', '/agent/schedules', ada, {
    name: 'Nightly',
    cron_schedule: '@every 1h',
    prompt: 'p',
    agent_config: { environment_id: changed },
  });
  await send('PUT', `/agent/schedules/${id}`, ada, {
    name: 'Nightly',
    cron_schedule: '@every 1h',
    enabled: true,
    prompt: 'p',
    agent_config: { environment_id: kept },
  });
  const shown = await outputOf((context) => preview(context, {}));
  expect(shown).toContain(`revision 1 of environment ${kept} "E", with texts of A member (${bob.uid})`);
  expect(shown).toContain('2 of these wait for you');

  await send('PUT', `/agent/environments/${changed}`, bob, commands('make', 'curl evil'));
  await expect(outputOf((context) => acceptAll(context, { yes: true }))).rejects.toThrow(
    `changed since the preview, and not accepted: environment ${changed} (revision 2)`,
  );
  const left = await outputOf((context) => listWaiting(context, {}));
  expect(left).toContain(changed);
  expect(left).not.toContain(kept);

  await outputOf((context) => preview(context, {}));
  expect(await outputOf((context) => acceptAll(context, { yes: true }))).toContain(
    `revision 2 of environment ${changed} is accepted`,
  );
  expect(await outputOf((context) => preview(context, {}))).toContain('nothing waits for an acceptance');
});

test('schedules update sends only what changed, says who waits, and takes a schedule over only if asked', async () => {
  const { id } = await send('POST', '/agent/schedules', ada, {
    name: 'Weekly',
    cron_schedule: '@every 1h',
    prompt: 'p',
    agent_config: { secrets: [{ name: 'MINE' }] },
  });
  const executor = async () =>
    (await service.ok<{ executor: { uid: string } }>('GET', `/agent/schedules/${id}`, { key: ada.key })).executor.uid;
  const said = await outputOf((context) => runRow(schedules, context, 'update', id, '--model', 'runbook'), bob);
  expect(said).toContain(`schedule Weekly lacks MINE until A admin accepts revision 2 of schedule ${id}`);
  expect(await executor()).toBe(ada.uid);
  await expect(
    outputOf((context) => runRow(schedules, context, 'update', id, '--executor', ada.uid), bob),
  ).rejects.toThrow('executor_uid');
});
