/**
 * Tests hostile commands of a run on gVisor's kernel. Each attack has a control, which must succeed: the same command outside of the
 * sandbox, or the same attack on a program of the run.
 */
import { readdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { gvisorFeatures, spawnTestWorker, temporaryDataDir, until } from '../packages/worker/test/worker.ts';
import { fakeAssignment, startFakeWorkerService } from './fakes/worker-service.ts';
import { lookForToken, sendSignal, startVictim } from './support/agent-attacks.ts';
import { type AgentProbe, openAgentProbe } from './support/agent-probe.ts';
import { giveRuntime } from './support/head-start.ts';
import { openMachineAttacks } from './support/machine-attacks.ts';

const features = await gvisorFeatures();
const hasCgroups = features?.includes('cgroup') === true;

describe.skipIf(features === undefined)('a hostile command of a run in a gvisor sandbox', () => {
  let probe: AgentProbe;
  beforeAll(async () => {
    probe = await openAgentProbe({
      RUNYARD_SANDBOX: 'gvisor',
      RUNYARD_SANDBOX_MEMORY_MB: '512',
      RUNYARD_SANDBOX_PROCESSES: '64',
      RUNYARD_SANDBOX_TMP_MB: '16',
      RUNYARD_SANDBOX_DISK_MB: '64',
    });
  });
  afterAll(() => probe[Symbol.asyncDispose]());
  /**
   * Runs a script as a command of the run, and returns its output. The script begins with `set +e`, because the shell of a run ends at
   * the first command that fails.
   */
  const attempt = (script: string) => probe.attempt(`set +e\nexec 2>&1\n${script}\necho end`);

  test('reaches no file, process, environment, socket or network of the machine', async () => {
    await using attacks = await openMachineAttacks(probe.it.worker.stateRoot);
    const outside = attacks.runOutside();
    for (const name of attacks.names) expect(outside).toContain(`REACHED ${name}\n`);
    const metadata = `node -e "require('net').connect({ host: '169.254.169.254', port: 80 }).on('connect', () => console.log('REACHED')).on('error', ({ code }) => console.log('metadata', code))"`;
    const seen = await attempt(`${attacks.script}\n${metadata}\nnode -p '"kernel " + require("os").release()'`);
    expect(seen).not.toContain('REACHED');
    expect(seen).toMatch(/metadata E\w+\nkernel (?!undefined)/);
    expect(seen).toContain('end');
  });

  test('does not find the run token in the environment, arguments, memory or descriptors of any process', async () => {
    const printed = await probe.attemptInNode((token) => `${startVictim}\n${lookForToken(token)}`);
    const found: string[] = JSON.parse(printed);
    // gVisor's kernel lets the command list the agent's descriptors, but none of them contains the token any more.
    expect(found.filter((line) => !line.startsWith('descriptors of the agent: '))).toEqual([
      'capital control in memory',
      'control in descriptors',
      'control in environ',
      'control in memory',
      'memory of the agent: EACCES',
    ]);
  });

  test('cannot open an inspector in the agent or end the agent with SIGUSR1', async () => {
    const printed = await probe.attemptInNode(() => startVictim + sendSignal);
    expect(printed).toMatch(/inspector of the control\nagent refused\n$/);
  });

  test('cannot remove the protection of the agent’s memory or gain a right that changes the sandbox', async () => {
    const seen = await attempt(
      [
        'touch own && echo MAY-write',
        'unshare -U true && echo MAY-make-namespaces',
        'echo 0 >/proc/sys/kernel/yama/ptrace_scope && echo GAINED-yama',
        'unshare -Ur sh -c "umount /proc/sys/kernel/yama; echo 0 >/proc/sys/kernel/yama/ptrace_scope" && echo GAINED-umount',
        'unshare -Urpf sh -c "mount -t proc p /tmp && echo 0 >/tmp/sys/kernel/yama/ptrace_scope" && echo GAINED-proc',
        'unshare -Ur mount -t tmpfs x /tmp && echo GAINED-mount',
        'unshare -Ur chroot /workspace true && echo GAINED-chroot',
        'mknod disk b 8 0 && echo GAINED-device',
        'hostname owned && echo GAINED-hostname',
        'su -c true </dev/null && echo GAINED-su',
        'for f in /usr/x /etc/hosts /opt/runyard/node /opt/runyard/agent/cache/x /run/x /x; do echo x >>$f && echo GAINED-$f; done',
        'grep -E "CapEff|CapPrm" /proc/self/status',
      ].join('\n'),
    );
    expect(seen).not.toContain('GAINED');
    expect(seen).toContain('MAY-write\nMAY-make-namespaces\n');
    expect(seen.match(/^Cap\w+:\s+0{16}$/gm)).toHaveLength(2);
  });

  test('cannot exceed the limits of processes, /tmp and file sizes, and a fork bomb ends with its sandbox', async () => {
    const start = (count: number) => `i=0; while [ $i -lt ${count} ]; do sleep 4 & i=$((i+1)); done`;
    const seen = await attempt(
      [
        `(${start(10)}) && echo MAY-start`,
        `(${start(200)}) || echo REFUSED-start`,
        'head -c 30000000 /dev/zero >/tmp/fill || echo REFUSED-tmp',
        'truncate -s 100000000 one || echo REFUSED-file',
      ].join('\n'),
    );
    for (const line of ['MAY-start', 'REFUSED-start', 'REFUSED-tmp', 'REFUSED-file']) expect(seen).toContain(line);
    await probe.ended('b() { b | b & }; b; sleep 1; exit 1');
    expect(await attempt('echo alive')).toContain('alive');
  });

  test.runIf(hasCgroups)('the sandbox is ended when its memory is used up', async () => {
    const take = (mb: number) =>
      `node -e 'const k = []; while (k.length < ${mb / 16}) k.push(Buffer.alloc(16 << 20, 1))'; echo "${mb} MB: $?"`;
    // The machine's kernel may end the whole gVisor sandbox instead of only the program.
    const outcome = await attempt(`${take(64)}\n${take(4096)}`).catch((error: Error) => error.message);
    expect(outcome).toMatch(/^64 MB: 0\n(.*\n)*4096 MB: 137\n|used up its 512 MB of memory/);
  });

  test('the sandbox is ended when unlinked open files exceed the disk limit', async () => {
    const hold = (fd: number) => `exec ${fd}>gone; rm gone; head -c 30000000 /dev/zero >&${fd}`;
    const { failure_reason } = await probe.ended(`${[3, 4, 5].map(hold).join('; ')}; sleep 60`);
    expect(failure_reason).toBe('disk_limit');
  });

  test('ends with its sandbox when the worker is killed, if a setting forbids that other workers adopt sandboxes', async () => {
    const dataDir = await temporaryDataDir();
    // Tests with bubblewrap store their runtime under the same name, so this test can use that runtime.
    await giveRuntime(dataDir, 'runtime-fixture-agent.ts-auto');
    const service = await startFakeWorkerService();
    const settings = { RUNYARD_SANDBOX: 'gvisor', RUNYARD_ADOPT_SECONDS: '0' };
    const worker = await spawnTestWorker(service, dataDir, settings);
    const before = new Set(await gvisorProcesses());
    service.send(fakeAssignment('survivor', ['--fixture', 'sh', 'setsid sleep 4715 & sleep 4715']));
    let pids: number[] = [];
    await until(async () => {
      pids = (await gvisorProcesses()).filter((pid) => !before.has(pid));
      return pids.length >= 2;
    });
    worker.process.kill('SIGKILL');
    await worker.exited;
    await until(async () => {
      const left = await gvisorProcesses();
      return !pids.some((pid) => left.includes(pid));
    });
    // Start a worker again, so that it removes the disks of the sandboxes of the killed worker.
    await (await spawnTestWorker(service, dataDir, settings))[Symbol.asyncDispose]();
    expect(await readdir(path.join(dataDir, 'worker/state/s'))).toEqual([]);
    await service.close();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  });
});

/** Returns the ids of all gVisor processes of the machine: its kernels and file servers. */
async function gvisorProcesses(): Promise<number[]> {
  const found: number[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const command = await readFile(path.join('/proc', name, 'cmdline'), 'latin1').catch(() => '');
    if (command.startsWith('runsc-')) found.push(Number(name));
  }
  return found;
}
