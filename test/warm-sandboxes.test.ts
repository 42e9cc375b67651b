/**
 * Tests sandboxes that a worker has started in advance, in which an agent waits for a run. Data of one run must not reach another run.
 * No sandbox may be used for two runs, and no waiting sandbox may outlive its worker.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readWaitingFile } from '../packages/worker/src/waiting-file.ts';
import {
  bubblewrapFeatures,
  processesWith,
  spawnTestWorker,
  temporaryDataDir,
  until,
} from '../packages/worker/test/worker.ts';
import { type FakeWorkerService, fakeAssignment, startFakeWorkerService } from './fakes/worker-service.ts';
import { lookForToken, sendSignal, startVictim } from './support/agent-attacks.ts';
import { type AgentProbe, openAgentProbe } from './support/agent-probe.ts';
import { openMachineAttacks } from './support/machine-attacks.ts';

const works = (await bubblewrapFeatures()) !== undefined;
const asRoot = process.getuid?.() === 0;

/**
 * Returns the process ids of agents that wait in sandboxes below the folder `stateRoot`. Their processes have mounted paths of this
 * folder.
 */
function waitingAgents(stateRoot: string): number[] {
  const agents = processesWith('/opt/runyard/agent/main.cjs');
  // Each line of `mountinfo` has a path relative to the root of the mounted file system, so remove the mount point.
  const mounted = stateRoot.replace(/^\/(tmp|dev\/shm)(?=\/)/, '');
  return agents.filter((pid) => {
    try {
      const isWaiting = readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('\0agent\0wait\0');
      return isWaiting && readFileSync(`/proc/${pid}/mountinfo`, 'utf8').includes(mounted);
    } catch {
      return false;
    }
  });
}

/** Returns true if a private part of the process's memory contains the text. */
function isInMemory(pid: number, text: string): boolean {
  const maps = readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n');
  const parts = maps.flatMap((line) => {
    const [, from, to] = /^(\w+)-(\w+) rw/.exec(line) ?? [];
    return from === undefined || to === undefined
      ? []
      : [{ from: Number.parseInt(from, 16), to: Number.parseInt(to, 16) }];
  });
  const { openSync, readSync, closeSync } = process.getBuiltinModule('node:fs');
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  try {
    return parts.some(({ from, to }) => {
      const bytes = Buffer.alloc(Math.min(to - from, 64 << 20));
      try {
        return bytes.subarray(0, readSync(memory, bytes, 0, bytes.length, from)).includes(text);
      } catch {
        return false;
      }
    });
  } finally {
    closeSync(memory);
  }
}

describe.skipIf(!works || !asRoot)('a run in a sandbox whose agent already waited', () => {
  let probe: AgentProbe;
  beforeAll(async () => {
    probe = await openAgentProbe({ RUNYARD_WARM_SANDBOXES: '2' });
  });
  afterAll(() => probe[Symbol.asyncDispose]());
  const stateRoot = () => probe.it.worker.stateRoot;
  const full = () => until(() => waitingAgents(stateRoot()).length === 2);
  /** Shell script that prints how the agent of its run was started. */
  const howStarted = 'tr "\\0" " " </proc/$PPID/cmdline; echo';

  test('finds nothing of an earlier run, and is the only run of its sandbox', async () => {
    await full();
    const mark = `left-by-the-first-${process.pid}`;
    const look = [
      howStarted,
      'echo user $(grep -s . /proc/self/uid_map) $(hostname)',
      `for folder in /workspace /home/agent /tmp /dev/shm; do find "$folder" -name '*${mark}*'; echo ${mark} >$folder/${mark}; done`,
      `grep -rs ${mark} /proc/*/environ | head -1`,
      `nohup sleep 4719.${process.pid} >/dev/null 2>&1 &`,
    ].join('\n');
    const seen: string[] = [];
    const sandboxes = new Set<string>();
    for (let n = 0; n < 3; n++) {
      await full();
      const waiting = (await readdir(path.join(stateRoot(), 's'))).sort();
      seen.push(await probe.attempt(look));
      for (const id of waiting) if (!(await readdir(path.join(stateRoot(), 's'))).includes(id)) sandboxes.add(id);
    }
    for (const text of seen) {
      expect(text, 'an agent waited for it').toMatch(/^agent run --task-id /);
      expect(text).not.toContain(mark);
    }
    expect(sandboxes.size, 'each run had a sandbox of its own, which is gone').toBe(3);
    expect(processesWith(`4719.${process.pid}`)).toEqual([]);
    const told = () => readWaitingFile(probe.it.dataDir)?.pool;
    await until(async () => (told()?.taken ?? 0) >= 3);
    expect(told()?.wanted).toBe(2);
  });

  test('gets an agent that knew no run while it waited: no run token, empty folders, no open files and only the loopback network', async () => {
    await full();
    const known = await probe.attemptInNode((token) => `console.log(${JSON.stringify(token)}.length)`);
    expect(Number(known)).toBeGreaterThan(8);
    const control = 'known-to-the-control';
    expect(isInMemory(process.pid, control), 'the look finds what is there').toBe(true);
    await full();
    for (const pid of waitingAgents(stateRoot())) {
      // The memory must not contain the prompt of the earlier run, which contained that run's token.
      expect(isInMemory(pid, 'console.log("')).toBe(false);
      const names = readFileSync(`/proc/${pid}/environ`, 'utf8')
        .split('\0')
        .map((entry) => entry.split('=')[0]);
      expect(names).not.toContain('TASK_ID');
      expect(names).not.toContain('RUNYARD_RUN_TOKEN');
      const interfaces = readFileSync(`/proc/${pid}/net/dev`, 'utf8').split('\n').slice(2).filter(Boolean);
      expect(interfaces.map((line) => line.trim().split(':')[0])).toEqual(['lo']);
      const root = `/proc/${pid}/root`;
      for (const folder of ['/workspace', '/home/agent', '/tmp', '/dev/shm'])
        expect(readdirSync(root + folder), folder).toEqual([]);
      const open = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
      expect(open.filter((name) => name.startsWith('/') && name !== '/dev/null')).toEqual([]);
    }
    const users = waitingAgents(stateRoot()).map(
      (pid) => /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1],
    );
    expect(new Set(users).size, 'each has a user of its own').toBe(2);
    expect(users).not.toContain('0');
  });

  test('reaches no file, process, environment, socket or network of the machine', async () => {
    await full();
    await using attacks = await openMachineAttacks(stateRoot());
    const outside = attacks.runOutside();
    for (const name of attacks.names) expect(outside).toContain(`REACHED ${name}\n`);
    const seen = await probe.attempt(`${howStarted}\nset +e\nexec 2>&1\n${attacks.script}\necho end`);
    expect(seen).toMatch(/^agent run --task-id /);
    expect(seen).not.toContain('REACHED');
    expect(seen).toContain('end');
  });

  test('does not find its own run token, and cannot take control of its agent', async () => {
    await full();
    const printed = await probe.attemptInNode((token) => `${startVictim}\n${lookForToken(token)}`);
    expect(JSON.parse(printed)).toEqual([
      'capital control in memory',
      'control in descriptors',
      'control in environ',
      'control in memory',
      'descriptors of the agent: EACCES',
      'environ of the agent: EACCES',
      'memory of the agent: EACCES',
    ]);
    await full();
    const signalled = await probe.attemptInNode(() => startVictim + sendSignal);
    expect(signalled).toBe('handled by the agent: 0 by the control: 1\ninspector of the control\nagent refused\n');
  });
});

describe.skipIf(!works)('the pool of sandboxes in which agents wait', () => {
  let service: FakeWorkerService;
  let dataDir: string;
  beforeAll(async () => {
    service = await startFakeWorkerService();
    dataDir = await temporaryDataDir();
  });
  afterAll(async () => {
    await service.close();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  });
  const waiting = () => waitingAgents(dataDir);
  const supervisors = () =>
    processesWith('runyard-supervisor:').filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(dataDir);
      } catch {
        return false;
      }
    });
  const settings = { RUNYARD_WARM_SANDBOXES: '2' };

  test('gives no sandbox to a run with other settings, gives each sandbox to at most one run, and ends when its worker ends', async () => {
    const worker = await spawnTestWorker(service, dataDir, settings);
    await until(() => waiting().length === 2);
    const before = waiting();
    // This run has other settings than the waiting sandboxes: an additional variable.
    service.send(fakeAssignment('other', ['--fixture', 'exit', '0'], { OTHER: 'variable' }));
    await service.waitFor('task_completed', (data) => data.execution_id === 'other');
    expect(waiting()).toEqual(before);
    const go = 'while ! [ -e /workspace/go ]; do sleep 0.05; done';
    for (const id of ['one', 'two', 'three']) service.send(fakeAssignment(id, ['--fixture', 'sh', `: ${id}; ${go}`]));
    for (const id of ['one', 'two', 'three'])
      await service.waitFor('sandbox_ready', (data) => data.execution_id === id);
    expect(
      (await readdir(path.join(dataDir, 'worker/state/s'))).length,
      'no sandbox has two runs',
    ).toBeGreaterThanOrEqual(3);
    await until(() => waiting().filter((pid) => !before.includes(pid)).length === 2);

    // Kill the worker while it gives a sandbox to a run, and while two more sandboxes wait.
    service.send(fakeAssignment('hand-over', ['--fixture', 'sh', `: hand-over; ${go}`]));
    await service.waitFor('task_claimed', (data) => data.execution_id === 'hand-over');
    worker.process.kill('SIGKILL');
    await worker.exited;
    await until(() => waiting().length === 0);

    await using next = await spawnTestWorker(service, dataDir, { RUNYARD_WARM_SANDBOXES: '1' });
    const hello = service.messages.findLast(({ type }) => type === 'worker_hello');
    const listed = hello?.type === 'worker_hello' ? hello.data.executions.map(({ execution_id }) => execution_id) : [];
    expect(listed).toEqual(expect.arrayContaining(['one', 'two', 'three']));
    const atWork = (id: string) => processesWith(`: ${id}; `).length > 0;
    expect(atWork('hand-over'), 'it is listed if it is at work').toBe(listed.includes('hand-over'));

    await until(() => waiting().length === 1);
    next.process.kill('SIGUSR2');
    await service.waitFor('worker_hello', (data) => data.draining);
    await until(() => waiting().length === 0);
    next.process.kill('SIGINT');
    expect(await next.exited).toBe(0);
    await until(() => supervisors().length === 0);
  });

  test('is empty if its size is set to 0, and runs then start in new sandboxes', async () => {
    await using _ = await spawnTestWorker(service, dataDir, { RUNYARD_WARM_SANDBOXES: '0' });
    service.send(fakeAssignment('cold', ['--fixture', 'sh', 'exit 0']));
    await service.waitFor('task_completed', (data) => data.execution_id === 'cold');
    expect(waiting()).toEqual([]);
  });
});
