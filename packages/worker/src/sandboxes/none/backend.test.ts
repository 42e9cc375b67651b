import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { fakeAssignment } from '../../../../../test/fakes/worker-service.ts';
import { startTestWorker, until } from '../../../test/worker.ts';
import { findProcesses } from '../../state/processes.ts';

const it = await startTestWorker({ settings: { RUNYARD_SANDBOX: 'none', RUNYARD_SANDBOX_DISK_MB: '16' } });
afterAll(() => it[Symbol.asyncDispose]());

const assign = (id: string, ...args: string[]): void => it.service.send(fakeAssignment(id, ['--fixture', ...args]));

test('the worker reports that its agents run unprotected', async () => {
  const { sandbox } = await it.service.waitFor('worker_hello');
  expect(sandbox).toMatchObject({
    backend: 'none',
    features: ['host-rules'],
    missing: [{ reason: expect.stringContaining('unprotected') }],
  });
});

test('the agent runs in a separate folder and does not get the environment of the worker', async () => {
  assign('plain', 'sh', 'pwd; env; exit 4');
  const { exit_code, message } = await it.service.waitFor('task_failed', (data) => data.execution_id === 'plain');
  expect(exit_code).toBe(4);
  expect(message).toContain(`${it.worker.stateRoot}/s/`);
  expect(message).not.toMatch(/RUNYARD_API_KEY|VITEST/);
  expect(message, 'services would listen on the machine').not.toContain('RUNYARD_SEPARATE_SANDBOX');
  await until(async () => (await readdir(path.join(it.worker.stateRoot, 's'))).length === 0);
});

test.each([
  ['without an allow-list', {}],
  ['with an allow-list', { allowed_hosts: ['api.example'] }],
])(
  'a run %s whose approval rule names a host is refused, because its programs reach the network',
  async (kind, more) => {
    const message = fakeAssignment(kind, ['--fixture', 'exit', '0']);
    const { task } = message.data;
    const snapshot = { ...task.agent_config_snapshot, approval_rules: [{ host: 'api.example' }] };
    const data = { ...message.data, ...more, task: { ...task, agent_config_snapshot: snapshot } };
    it.service.send({ ...message, data });
    const failed = await it.service.waitFor('task_failed', (end) => end.execution_id === kind);
    expect(failed).toMatchObject({
      failure: { reason: 'unsupported' },
      message: expect.stringMatching(/an approval rule names a host.*\(none\)/),
    });
  },
);

test('processes that an agent left running are ended, also in other sessions', async () => {
  const mark = `4714.${process.pid}`;
  assign('daemons', 'sh', `setsid sleep ${mark} >/dev/null 2>&1 & sleep ${mark} >/dev/null 2>&1 & sleep 0.1`);
  await it.service.waitFor('task_completed', (data) => data.execution_id === 'daemons');
  expect(await findProcesses('cmdline', mark)).toEqual([]);
});

test('a cancelled agent that ignores SIGTERM is killed', async () => {
  assign('stubborn', 'stubborn');
  await it.service.waitFor('sandbox_ready', (data) => data.execution_id === 'stubborn');
  it.service.send({ type: 'task_cancellation', data: { task_id: 'task-of-stubborn', grace_ms: 100 } });
  expect((await it.service.waitFor('task_completed', (data) => data.execution_id === 'stubborn')).task_state).toBe(
    'CANCELLED',
  );
});

test('an agent whose deleted but open files exceed the disk limit is ended', async () => {
  assign('unlinked', 'sh', 'exec 3>gone; rm gone; head -c 30000000 /dev/zero >&3; exec sleep 60');
  const { failure_reason } = await it.service.waitFor('task_failed', (data) => data.execution_id === 'unlinked');
  expect(failure_reason).toBe('disk_limit');
});
