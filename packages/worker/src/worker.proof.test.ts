/** Tests sandboxes whose processes end slowly. No message may report the end of a sandbox before its last process has ended. */
import { rm } from 'node:fs/promises';
import { parseSettings } from '@runyard/contract/settings/settings';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type FakeWorkerService, fakeAssignment, startFakeWorkerService } from '../../../test/fakes/worker-service.ts';
import { canFreeze, freeze } from '../test/freezer.ts';
import {
  bubblewrapFeatures,
  fixtureAgent,
  running,
  spawnTestWorker,
  temporaryDataDir,
  until,
  workerEnvironment,
} from '../test/worker.ts';
import { startWorker } from './worker.ts';

const works = (await bubblewrapFeatures()) !== undefined && (await canFreeze());
const waiting = 'processes of an ended sandbox are still there; waiting until they are gone';

describe.skipIf(!works).each(['bubblewrap', 'none'])(
  'a killed process of a %s sandbox that does not end',
  (sandbox) => {
    let service: FakeWorkerService;
    let dataDir: string;
    let logged: string[];
    beforeEach(async () => {
      service = await startFakeWorkerService();
      dataDir = await temporaryDataDir();
      logged = [];
    });
    afterEach(async () => {
      await service.close();
      await rm(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    });

    const settings = { RUNYARD_SANDBOX: sandbox, RUNYARD_ADOPT_SECONDS: '0' };
    const startHere = () => {
      const parsed = parseSettings(workerEnvironment(service, dataDir, settings));
      if (!parsed.ok) throw new Error(parsed.problems.join('; '));
      const log = pino({ level: 'warn' }, { write: (line: string) => void logged.push(line) });
      return startWorker(parsed.settings, { log, agentEntry: fixtureAgent });
    };
    const saysThatItWaits = () => until(() => logged.some((line) => line.includes(waiting)));
    const count = (type: string) => service.messages.filter((message) => message.type === type).length;

    test('delays the hello of the next worker until this process has ended', async () => {
      const mark = `${sandbox === 'none' ? 4721 : 4722}.${process.pid}`;
      const first = await spawnTestWorker(service, dataDir, settings);
      const { instance_id } = await service.waitFor('worker_hello');
      service.send(fakeAssignment('slow', ['--fixture', 'sh', `exec sleep ${mark}`]));
      await until(async () => (await running(mark)) > 0);
      await using frozen = await freeze(mark);
      first.process.kill('SIGKILL');
      await first.exited;
      const second = startHere();
      await using _ = { [Symbol.asyncDispose]: async () => (await second).stop() };
      const hello = service.waitFor('worker_hello', (data) => data.instance_id !== instance_id);
      await Promise.race([saysThatItWaits(), second, hello]);
      expect(await running(mark), 'the old agent is there').toBeGreaterThan(0);
      expect(count('worker_hello'), 'only the first worker has said hello').toBe(1);
      await frozen.thaw();
      expect(await hello).toMatchObject({ token: `token of ${instance_id}`, executions: [] });
      expect(await running(mark)).toBe(0);
    });

    test('delays the report about the end of the execution until this process has ended', async () => {
      const mark = `${sandbox === 'none' ? 4723 : 4724}.${process.pid}`;
      const worker = await startHere();
      try {
        await service.waitFor('worker_hello');
        service.send(fakeAssignment('slow', ['--fixture', 'sh', `setsid sleep ${mark} >/dev/null 2>&1 & wait`]));
        await until(async () => (await running(mark)) > 0);
        await using frozen = await freeze(mark);
        service.send({ type: 'task_cancellation', data: { task_id: 'task-of-slow', grace_ms: 0 } });
        const completed = service.waitFor('task_completed');
        await Promise.race([saysThatItWaits(), completed]);
        expect(await running(mark)).toBeGreaterThan(0);
        expect(count('task_completed')).toBe(0);
        await frozen.thaw();
        expect(await completed).toMatchObject({ task_state: 'CANCELLED' });
        expect(await running(mark)).toBe(0);
      } finally {
        await worker.stop();
      }
    });
  },
);
