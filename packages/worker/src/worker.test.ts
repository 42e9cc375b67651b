import { createHash } from 'node:crypto';
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fakeAssignment } from '../../../test/fakes/worker-service.ts';
import { releaseAgents } from '../test/release.ts';
import { bubblewrapFeatures, running, startTestWorker, type TestWorker, until } from '../test/worker.ts';
import { findWorkerCgroups } from './sandboxes/bubblewrap/ground.ts';
import { defaultWorkerName } from './worker.ts';

const features = await bubblewrapFeatures();
const works = features !== undefined;
const limitsMemory = features?.includes('cgroup') === true;
let number = 0;
const newId = (): string => `execution-${++number}`;

/** Counts the zombies that this process, in which the worker runs, has not waited for. Other tests make zombies meanwhile, too. */
const zombies = async (): Promise<number> => {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')));
  return stats.filter((stat) => stat.includes(`) Z ${process.pid} `)).length;
};

test('the default name of a worker contains the host name', () => {
  expect(defaultWorkerName('build box_7.local')).toBe('runyard-build-box_7.local');
});

describe.skipIf(!works)('a worker with bubblewrap', () => {
  let it: TestWorker;
  beforeAll(async () => {
    it = await startTestWorker({
      settings: { RUNYARD_WORKER_SLOTS: '3', RUNYARD_SANDBOX_MEMORY_MB: '256', RUNYARD_SANDBOX_DISK_MB: '32' },
    });
  });
  afterAll(() => it[Symbol.asyncDispose]());

  const assign = (...args: string[]): string => {
    const id = newId();
    it.service.send(fakeAssignment(id, ['--fixture', ...args]));
    return id;
  };
  const completed = (id: string) => it.service.waitFor('task_completed', (data) => data.execution_id === id);
  const failed = (id: string) => it.service.waitFor('task_failed', (data) => data.execution_id === id);
  const ready = (id: string) => it.service.waitFor('sandbox_ready', (data) => data.execution_id === id);

  test('sends a hello as the first message, which contains the number of slots and how well sandboxes are isolated', async () => {
    const [hello] = it.service.messages;
    expect(hello).toMatchObject({
      type: 'worker_hello',
      data: { worker_id: 'runyard-test', slots: 3, executions: [], draining: false },
    });
    expect((await it.service.waitFor('worker_hello')).sandbox.features).toContain('no-network');
  });

  test('takes no runs while it cannot make sandboxes, says why, and takes runs again by itself', async () => {
    const sandboxes = path.join(it.worker.stateRoot, 's');
    await rename(sandboxes, `${sandboxes}-away`);
    await writeFile(sandboxes, '');
    expect((await failed(assign())).failure?.phase).toBe('prepare');
    const { problem } = await it.service.waitFor('worker_status', (data) => data.problem !== undefined);
    expect(problem).toMatch(/^a test sandbox could not be made: /);
    const refused = assign();
    const rejected = await it.service.waitFor('task_rejected', (data) => data.execution_id === refused);
    expect(rejected.reason).toContain(problem);
    const before = it.service.messages.length;
    await rm(sandboxes);
    await rename(`${sandboxes}-away`, sandboxes);
    await until(async () =>
      it.service.messages.slice(before).some(({ type, data }) => type === 'worker_status' && !('problem' in data)),
    );
    await completed(assign('exit', '0'));
  });

  test('reports its version and the free disk space for its sandboxes', async () => {
    const { version } = await it.service.waitFor('worker_hello');
    expect(version).toMatch(/^\d+\.\d+\.\d+/);
    const { disk } = await it.service.waitFor('worker_status');
    expect(disk.free_bytes).toBeGreaterThan(0);
    expect(disk.total_bytes).toBeGreaterThanOrEqual(disk.free_bytes);
  });

  test('claims, starts and completes an execution whose agent succeeds', async () => {
    const id = assign('exit', '0');
    await completed(id);
    const types = it.service.messages
      .filter((message) => 'execution_id' in message.data && message.data.execution_id === id)
      .map(({ type }) => type);
    expect(types).toEqual(['task_claimed', 'sandbox_ready', 'task_completed']);
  });

  test.runIf(features?.includes('cpu') === true)(
    'gives a sandbox whose agent waits the least share of the processors, and its usual share when it works again',
    async () => {
      const id = assign('sh', 'while ! [ -e go ]; do sleep 0.05; done');
      await ready(id);
      const owner = createHash('sha256').update(path.join(it.dataDir, 'worker')).digest('hex').slice(0, 12);
      const found = await findWorkerCgroups(owner);
      if (!found.ok || found.hierarchy.cpu === undefined) throw new Error('no cgroup');
      const { cpu, version } = found.hierarchy;
      const shares = async () => {
        const groups = (await readdir(cpu, { withFileTypes: true })).filter((entry) => entry.isDirectory());
        const file = version === 2 ? 'cpu.weight' : 'cpu.shares';
        return await Promise.all(groups.map(({ name }) => readFile(path.join(cpu, name, file), 'utf8')));
      };
      const least = version === 2 ? '1\n' : '2\n';
      const idle = (is: boolean) =>
        it.service.send({ type: 'task_idle', data: { task_id: `task-of-${id}`, execution_id: id, idle: is } });
      idle(true);
      await expect.poll(shares).toContain(least);
      idle(false);
      await expect.poll(shares).not.toContain(least);
      await releaseAgents(it.worker.stateRoot);
      await completed(id);
    },
  );

  test.runIf(features?.includes('freeze') === true)(
    'freezes the commands of a run that waits for other runs, but not the agent of the run, and can cancel the run in this state',
    async () => {
      const id = assign('sh', 'n=0; while :; do n=$((n+1)); echo $n > n; sleep 0.01; done');
      await ready(id);
      const sandboxes = path.join(it.worker.stateRoot, 's');
      const counted = async () => {
        const texts = (await readdir(sandboxes)).map((name) =>
          readFile(path.join(sandboxes, name, 'workspace/n'), 'utf8').catch(() => ''),
        );
        return (await Promise.all(texts)).join(' ').trim();
      };
      const isCounting = async () => {
        const before = await counted();
        await sleep(200);
        return (await counted()) !== before;
      };
      const tell = (idle: boolean, awaits: boolean) =>
        it.service.send({ type: 'task_idle', data: { task_id: `task-of-${id}`, execution_id: id, idle, awaits } });
      await expect.poll(isCounting).toBe(true);
      tell(true, true);
      await expect.poll(isCounting).toBe(false);
      // The agent now waits for a follow-up and not for other runs, so the commands of the run may continue.
      tell(true, false);
      await expect.poll(isCounting).toBe(true);
      tell(true, true);
      await expect.poll(isCounting).toBe(false);
      it.service.send({ type: 'task_cancellation', data: { task_id: `task-of-${id}`, execution_id: id, grace_ms: 1 } });
      await completed(id);
    },
  );

  test('rejects a new assignment of an execution until the sandbox of the old assignment has ended', async () => {
    const id = assign('stubborn');
    await ready(id);
    const again = () => it.service.send(fakeAssignment(id, ['--fixture', 'exit', '0'], {}, 'another'));
    again();
    await it.service.waitFor('task_rejected', (data) => data.execution_id === id);
    await completed(id);
    const count = (type: string) =>
      it.service.messages.filter(
        (message) => message.type === type && 'execution_id' in message.data && message.data.execution_id === id,
      ).length;
    const before = count('sandbox_ready');
    again();
    await until(() => count('sandbox_ready') === before + 1);
    await until(() => count('task_completed') === 2);
  });

  test('starts the agent in the workspace with the arguments and variables of the worker protocol, without variables of the worker', async () => {
    const id = assign('sh', 'tr "\\0" " " </proc/$PPID/cmdline; echo; pwd; env | sort; exit 9');
    const { message } = await failed(id);
    expect(message).toContain(
      `/opt/runyard/agent/node --disable-sigusr1 --openssl-config=/dev/null --v8-pool-size=1 /opt/runyard/agent/main.cjs agent run --task-id task-of-${id} --sandboxed --server-root-url ${it.service.url} --idle-on-complete 0s`,
    );
    expect(message).toContain('\n/workspace\n');
    const names = [...message.matchAll(/^([A-Z_]+)=/gm)].map(([, name]) => name);
    expect(names).toEqual([
      'HOME',
      'LANG',
      'PATH',
      'PWD',
      'RUNYARD_RELAY_SOCKET',
      'RUNYARD_RUN_FOLDERS',
      'RUNYARD_RUN_TOKEN_FD',
      'RUNYARD_SANDBOX_OWNER',
      'RUNYARD_SEPARATE_SANDBOX',
      'TASK_ID',
      'TERM',
      'USER',
      'WARP_SERVER_ROOT_URL',
    ]);
  });

  test('starts the agent with stored compiled code, which no sandbox can change', async () => {
    const compile = `const [parts, cache] = ['parts', 'cache'].map((folder) => '/opt/runyard/agent/' + folder + '/main.cjs');
      const { cachedDataRejected } = new vm.Script(fs.readFileSync(parts, 'latin1'), { cachedData: fs.readFileSync(cache) });
      console.log(cachedDataRejected ? 'the code was rejected' : 'the code was accepted');
      fs.writeFileSync(cache, '');`;
    const id = assign('sh', `/opt/runyard/node --disable-sigusr1 --v8-pool-size=1 -e "${compile}"`);
    const { message } = await failed(id);
    expect(message).toContain('the code was accepted');
    expect(message).toContain('EROFS');
  });

  test('reports a failed agent with its exit code and the end of its output', async () => {
    const id = assign('sh', 'echo first; echo what went wrong >&2; exit 3');
    expect(await failed(id)).toMatchObject({
      exit_code: 3,
      failure_reason: 'agent_exited',
      failure: { phase: 'run' },
      message: expect.stringContaining('what went wrong'),
    });
  });

  test.each([
    ['SIGKILL', 137],
    ['SIGSEGV', 139],
  ])('reports 128 + the number of the signal for an agent that %s ended', async (signal, code) => {
    expect((await failed(assign('signal', signal))).exit_code).toBe(code);
  });

  test('ends all processes that an agent has left, also in other sessions, and leaves no zombies', async () => {
    const mark = `4711.${process.pid}`;
    const id = assign('sh', `setsid sleep ${mark} >/dev/null 2>&1 & setsid setsid sleep ${mark} & sleep 0.1`);
    await completed(id);
    expect(await running(mark)).toBe(0);
    await until(async () => (await zombies()) === 0);
    await until(async () => (await readdir(path.join(it.worker.stateRoot, 's'))).length <= 1);
  });

  test('kills a cancelled agent that ignores SIGTERM when the grace period is over', async () => {
    const [usual, short] = [assign('stubborn'), assign('stubborn')];
    await Promise.all([ready(usual), ready(short)]);
    const cancel = (id: string, grace: { grace_ms?: number }) =>
      it.service.send({ type: 'task_cancellation', data: { task_id: `task-of-${id}`, execution_id: id, ...grace } });
    const began = performance.now();
    cancel(usual, {});
    cancel(short, { grace_ms: 300 });
    expect((await completed(short)).task_state).toBe('CANCELLED');
    expect(performance.now() - began).toBeGreaterThan(250);
    expect((await completed(usual)).task_state).toBe('CANCELLED');
    const ended = it.service.messages.flatMap(({ type, data }) =>
      type === 'task_completed' && [usual, short].includes(data.execution_id ?? '') ? [data.execution_id] : [],
    );
    expect(ended, 'the usual grace is 5 s').toEqual([short, usual]);
  });

  test('cancels only the execution that the cancellation names', async () => {
    const id = assign('sh', 'sleep 0.3');
    it.service.send({
      type: 'task_cancellation',
      data: { task_id: `task-of-${id}`, execution_id: 'another', grace_ms: 0 },
    });
    expect((await completed(id)).task_state).toBeUndefined();
  });

  test('rejects an assignment while all slots are in use, and accepts an assignment when a slot is free', async () => {
    const busy = [assign('polite'), assign('polite'), assign('polite')];
    await Promise.all(busy.map(ready));
    const tooMany = assign('exit', '0');
    const { reason } = await it.service.waitFor('task_rejected', (data) => data.execution_id === tooMany);
    expect(reason).toContain('3 slots');
    for (const id of busy)
      it.service.send({ type: 'task_cancellation', data: { task_id: `task-of-${id}`, grace_ms: 0 } });
    await Promise.all(busy.map(completed));
    await completed(assign('exit', '0'));
  });

  test('makes a separate sandbox for each of several assignments that arrive at the same time', async () => {
    const script = '[ -e mine ] && exit 9; touch mine; sleep 0.3; [ "$(ls)" = mine ]';
    const ids = [1, 2, 3].map(() => assign('sh', script));
    const about = (type: string): string[] =>
      ids.filter((id) =>
        it.service.messages.some(
          (message) => message.type === type && 'execution_id' in message.data && message.data.execution_id === id,
        ),
      );
    await until(() => about('task_completed').length + about('task_failed').length >= 3);
    expect(about('task_failed')).toEqual([]);
    expect(about('task_completed')).toEqual(ids);
    expect(about('sandbox_ready')).toEqual(ids);
  });

  test('runs an execution only once, even if it gets the same assignment several times', async () => {
    const id = newId();
    const assignment = fakeAssignment(id, ['--fixture', 'sh', 'sleep 0.2']);
    it.service.send(assignment);
    it.service.send(assignment);
    await completed(id);
    it.service.send(assignment);
    const about = (type: string): number =>
      it.service.messages.filter(
        (message) => message.type === type && 'execution_id' in message.data && message.data.execution_id === id,
      ).length;
    await until(() => about('task_completed') === 2);
    expect(about('task_claimed')).toBe(1);
    expect(about('sandbox_ready')).toBe(1);
  });

  test.runIf(limitsMemory)(
    'reports a sandbox that has used up its memory, and names the setting to raise',
    async () => {
      const { failure_reason, message } = await failed(assign('memory'));
      expect(failure_reason).toBe('out_of_memory');
      expect(message).toContain('RUNYARD_SANDBOX_MEMORY_MB');
    },
  );

  test('ends a sandbox whose workspace exceeds the disk limit, and reports this', async () => {
    const { failure_reason, message } = await failed(
      assign('sh', 'while :; do head -c 8000000 /dev/zero > $(mktemp -p .); done 2>/dev/null'),
    );
    expect(failure_reason).toBe('disk_limit');
    expect(message).toContain('RUNYARD_SANDBOX_DISK_MB');
  });

  test('needs little memory while an agent writes very much output, and reports the end of the output', async () => {
    const before = process.memoryUsage().rss;
    const id = assign('flood');
    await ready(id);
    let most = 0;
    const began = performance.now();
    await until(() => {
      most = Math.max(most, process.memoryUsage().rss);
      return performance.now() - began > 1500;
    });
    it.service.send({ type: 'task_cancellation', data: { task_id: `task-of-${id}`, grace_ms: 0 } });
    await completed(id);
    expect(most - before).toBeLessThan(120 * 1024 * 1024);
  });

  test('refuses an assignment with an image, because sandboxes of bubblewrap use the programs of the machine', async () => {
    const id = newId();
    const assignment = fakeAssignment(id);
    it.service.send({ ...assignment, data: { ...assignment.data, docker_image: 'node:24' } });
    expect((await failed(id)).message).toContain('this worker cannot run images');
  });

  test('refuses a variable whose value would add options to the command that makes the sandbox', async () => {
    const id = newId();
    it.service.send(fakeAssignment(id, [], { EVIL: 'x\0--bind\0/\0/host' }));
    expect((await failed(id)).message).toContain('EVIL');
  });

  test('lets agents continue while the service is unreachable, and reports their end on the next connection', async () => {
    const mark = `: patient-${process.pid}`;
    const id = assign('sh', `${mark}; while ! [ -e /workspace/go ]; do sleep 0.05; done`);
    await ready(id);
    const before = it.service.connectionCount();
    it.service.refuseWith(503);
    it.service.cutConnections();
    await until(async () => (await running(mark)) > 0);
    await releaseAgents(it.worker.stateRoot);
    await until(async () => (await running(mark)) === 0);
    it.service.refuseWith(undefined);
    await completed(id);
    expect(it.service.connectionCount()).toBeGreaterThan(before);
    const hellos = it.service.messages.filter(({ type }) => type === 'worker_hello');
    expect(hellos.length).toBeGreaterThan(1);
  });
});
