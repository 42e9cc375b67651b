/** Tests the schedules commands, and a schedule whose run executes in a real sandbox. */
import type { ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import { describe, expect, test } from 'vitest';
import { runCommand } from '../support/command-line.ts';
import { runyardFile } from '../support/programs.ts';
import { eventually, type System } from '../support/system.ts';

const runyard = await runyardFile();
const uuid = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;
const minuteMs = 60_000;

/**
 * Describes the tests. The first test creates a schedule that fires each minute. Then the tests of `meanwhile` run, and after them a
 * test checks that the schedule has fired.
 */
export const describeSchedulesCommandLine = (system: System, meanwhile: () => void) =>
  describe('the schedules commands', () => {
    const call = (...args: string[]) =>
      runCommand([runyard, 'schedules', ...args], {
        cwd: system.dataDir,
        env: {
          RUNYARD_BASE_URL: system.baseUrl(),
          RUNYARD_API_KEY: system.key,
          RUNYARD_DATA_DIR: `${system.dataDir}/none`,
        },
      });
    const create = async (...args: string[]) => {
      const { output, code } = await call(
        'create',
        'Say it.\n\n```sh\necho scheduled\n```',
        '--name',
        'Minutely',
        ...args,
      );
      expect(code).toBe(0);
      return output.split('\n')[0] ?? '';
    };
    const read = async (id: string): Promise<ScheduledAgentItem> => JSON.parse((await call('get', id)).output);

    let firstTime: number;
    let id: string;

    test('create a schedule', async () => {
      firstTime = Math.ceil(Date.now() / minuteMs) * minuteMs;
      id = await create('--cron', '* * * * *', '--overlap', 'skip');
      expect(id).toMatch(uuid);
    });

    describe('while they run', meanwhile);

    test('show that a schedule fires on time and its run succeeds in a sandbox', { timeout: 150_000 }, async () => {
      const { runs } = await eventually(
        'the run of the schedule',
        async () => {
          const listed = await system.call<{ runs: { run_id: string; created_at: string }[] }>(
            'GET',
            `/agent/runs?schedule_id=${id}`,
          );
          return listed.runs.length > 0 ? listed : null;
        },
        90_000,
      );
      await call('pause', id);
      const [{ run_id: runId, created_at } = { run_id: '', created_at: '' }] = runs.slice(-1);
      expect(Date.parse(created_at)).toBeGreaterThanOrEqual(firstTime);
      const run = await system.untilEnded(runId, 60_000);
      expect(run).toMatchObject({
        state: 'SUCCEEDED',
        source: 'SCHEDULED_AGENT',
        schedule: { schedule_id: id, schedule_name: 'Minutely', cron_schedule: '* * * * *' },
      });
      expect((await call('history', id)).output).toMatch(new RegExp(`\tschedule\tstarted\t${runId}$`, 'm'));
      await call('delete', id);
    });

    test('list, change, pause, resume, start and delete schedules', async () => {
      const id = await create('--cron', '0 9 * * 1-5', '--timezone', 'Europe/Berlin', '--paused', '--max-live', '2');
      expect(await read(id)).toMatchObject({ enabled: false, timezone: 'Europe/Berlin', max_live_runs: 2 });
      expect((await call('list')).output).toBe(`${id}\tpaused\t0 9 * * 1-5\t\t\tMinutely\n`);
      expect((await call('resume', id)).output).toMatch(/is active; its next time is .* UTC/);
      expect((await call('update', id, '--cron', '@daily', '--overlap', 'queue', '--model', 'runbook')).output).toBe(
        `${id} is changed\n`,
      );
      expect(await read(id)).toMatchObject({
        name: 'Minutely',
        cron_schedule: '@daily',
        overlap: 'queue',
        timezone: 'Europe/Berlin',
        agent_config: { model_id: 'runbook' },
        enabled: true,
      });
      const runId = (await call('run', id)).output.trim();
      expect(runId).toMatch(uuid);
      expect((await system.untilEnded(runId, 60_000)).state).toBe('SUCCEEDED');
      expect((await call('history', id)).output).toMatch(new RegExp(`\thand\tstarted\t${runId}\n`));
      expect((await call('pause', id)).output).toBe(`${id} is paused\n`);
      expect((await call('delete', id)).output).toBe(`${id} is deleted\n`);
      expect((await call('list', '--json')).output).toContain('"schedules":[]');
      const refused = await call('create', 'x', '--name', 'n', '--cron', '61 * * * *');
      expect([refused.code, refused.output]).toEqual([1, expect.stringContaining('cron_schedule')]);
      expect((await call('update', id)).output).toContain('nothing to change');
    });
  });
