/**
 * Tests hostile commands of a run in a container of a real container engine. Each attack has a control, which must succeed: the same
 * command outside of the container, or an action that the run may do.
 */

import { parseSettings } from '@runyard/contract/settings/settings';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { probeSandbox } from '../packages/worker/src/backends/probe.ts';
import { findGvisor } from '../packages/worker/src/sandboxes/gvisor/find-gvisor.ts';
import { lookForToken, openMemories, sendSignal, startVictim } from './support/agent-attacks.ts';
import { type AgentProbe, openAgentProbe } from './support/agent-probe.ts';
import { startTestEngine, type TestEngine } from './support/container-engine.ts';
import { openMachineAttacks } from './support/machine-attacks.ts';

const started = await startTestEngine();
const hasGvisor = (await findGvisor().catch(() => undefined)) !== undefined;
const title = 'a hostile command of a run in a container';

describe.skipIf(typeof started === 'string')(
  typeof started === 'string' ? `${title} (skipped: ${started})` : title,
  () => {
    const engine = started as TestEngine;
    let probe: AgentProbe;
    beforeAll(async () => {
      await engine.makeImage('box:1', await engine.makeRoot());
      probe = await openAgentProbe({
        RUNYARD_SANDBOX: 'docker',
        RUNYARD_DOCKER_HOST: engine.host,
        RUNYARD_DOCKER_IMAGE: 'box:1',
        RUNYARD_SANDBOX_MEMORY_MB: '256',
        RUNYARD_SANDBOX_PROCESSES: '64',
        RUNYARD_SANDBOX_TMP_MB: '16',
        RUNYARD_SANDBOX_DISK_MB: '64',
      });
    });
    afterAll(async () => {
      await probe?.[Symbol.asyncDispose]();
      expect(await engine.containers(), 'containers that are left').toEqual([]);
      await engine[Symbol.asyncDispose]();
    });
    /**
     * Runs a script as a command of the run, and returns its output. The script begins with `set +e`, because the shell of a run ends
     * at the first command that fails.
     */
    const attempt = (script: string) => probe.attempt(`set +e\nexec 2>&1\n${script}\necho end`);

    test('reaches no file, process, environment, socket or network of the machine, and does not reach the container engine', async () => {
      await using attacks = await openMachineAttacks(probe.it.worker.stateRoot);
      const outside = attacks.runOutside();
      for (const name of attacks.names) expect(outside).toContain(`REACHED ${name}\n`);
      const socket = engine.host.slice('unix://'.length);
      const more = [
        `node -e "require('net').connect({ host: '169.254.169.254', port: 80 }).on('connect', () => console.log('REACHED')).on('error', ({ code }) => console.log('metadata', code))"`,
        `for s in ${socket} /var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock; do [ -e $s ] && echo REACHED $s; done`,
        'ls /run/runyard',
      ];
      const seen = await attempt([attacks.script, ...more].join('\n'));
      expect(seen).not.toContain('REACHED');
      expect(seen).toMatch(/metadata E\w+\nrelay\.sock\nend/);
    });

    test('does not find the run token in the environment, arguments, memory or descriptors of any process', async () => {
      const printed = await probe.attemptInNode((token) => `${startVictim}\n${lookForToken(token)}`);
      const found: string[] = JSON.parse(printed);
      expect(found.filter((line) => !line.startsWith('descriptors of the agent: '))).toEqual([
        'capital control in memory',
        'control in descriptors',
        'control in environ',
        'control in memory',
        'environ of the agent: EACCES',
        'memory of the agent: EACCES',
      ]);
    });

    test('cannot write into the memory of the first process of the container, which ends last', async () => {
      const printed = await probe.attemptInNode(() => `${startVictim}\n${openMemories}`);
      expect(JSON.parse(printed)).toEqual({ control: 'opened', first: 'EACCES' });
    });

    test('cannot open an inspector in the agent or end the agent with SIGUSR1', async () => {
      const printed = await probe.attemptInNode(() => startVictim + sendSignal);
      expect(printed).toMatch(/inspector of the control\nagent refused\n$/);
    });

    test('cannot gain a right with which it could change the container', async () => {
      const seen = await attempt(
        [
          'touch own && echo MAY-write',
          'unshare -U true && echo GAINED-namespace',
          'unshare -r mount -t tmpfs x /tmp && echo GAINED-mount',
          'mount -t tmpfs x /workspace && echo GAINED-mount',
          'mknod disk b 8 0 && echo GAINED-device',
          'hostname owned && echo GAINED-hostname',
          'chroot /workspace true && echo GAINED-chroot',
          'for f in /bin/x /etc/hosts /etc/passwd /etc/resolv.conf /opt/runyard/node /opt/runyard/libc.so.6 /opt/runyard/agent/x /run/x /x /proc/sys/kernel/hostname /sys/fs/cgroup/x; do echo x >>$f && echo GAINED-$f; done',
          'grep -E "CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp:" /proc/self/status',
        ].join('\n'),
      );
      expect(seen).not.toContain('GAINED');
      expect(seen).toContain('MAY-write\n');
      expect(seen.match(/^Cap\w+:\s+0{16}$/gm)).toHaveLength(3);
      expect(seen).toMatch(/NoNewPrivs:\s+1\nSeccomp:\s+2\n/);
    });

    test('cannot exceed the limits of processes, /tmp, /dev/shm and file sizes, and a fork bomb ends with its container', async () => {
      const start = (count: number) => `i=0; while [ $i -lt ${count} ]; do sleep 4 & i=$((i+1)); done`;
      const seen = await attempt(
        [
          `(${start(10)}) && echo MAY-start`,
          `(${start(200)}) || echo REFUSED-start`,
          'head -c 30000000 /dev/zero >/tmp/fill || echo REFUSED-tmp',
          'head -c 30000000 /dev/zero >/dev/shm/fill || echo REFUSED-shm',
          'truncate -s 100000000 one || echo REFUSED-file',
        ].join('\n'),
      );
      for (const line of ['MAY-start', 'REFUSED-start', 'REFUSED-tmp', 'REFUSED-shm', 'REFUSED-file'])
        expect(seen).toContain(line);
      await probe.ended('b() { b | b & }; b; sleep 1; exit 1');
      expect(await attempt('echo alive')).toContain('alive');
    });

    const probeRuntime = async (runtime: string) => {
      const parsed = parseSettings({
        RUNYARD_SANDBOX: 'docker',
        RUNYARD_DOCKER_HOST: engine.host,
        RUNYARD_DOCKER_RUNTIME: runtime,
      });
      return await probeSandbox(parsed.ok ? parsed.settings : expect.fail(parsed.problems.join()));
    };

    test('a worker whose engine lacks the configured runtime starts no container', async () => {
      const { ok, reasons, about } = await probeRuntime('absent');
      expect({ ok, reasons }).toEqual({
        ok: false,
        reasons: [expect.stringMatching(/no runtime absent \(RUNYARD_DOCKER_RUNTIME\), only .*runc/)],
      });
      expect(about?.[0]).toMatch(/^engine \d+\.\d+\.\S+, runtime absent, cgroup version [12]$/);
      expect(about?.at(-1)).toMatch(
        /^images of the engine: \d+ with \d+ MB, .* keeps 51200 MB \(RUNYARD_DOCKER_PULLED_MB\)$/,
      );
    });

    test.runIf(hasGvisor)('a worker with the runtime runsc gives each container a kernel of its own', async () => {
      const { ok, reasons, level } = await probeRuntime('runsc');
      expect(ok, reasons.join()).toBe(true);
      expect(level.features).toContain('own-kernel');
      expect(level.missing.map(({ feature }) => feature)).toContain('private-memory');
    });

    test('the container is ended when its memory is used up', async () => {
      const take = (mb: number) =>
        `node -e 'const k = []; while (k.length < ${mb / 16}) k.push(Buffer.alloc(16 << 20, 1))'; echo "${mb} MB: $?"`;
      const outcome = await attempt(`${take(64)}\n${take(4096)}`).catch((error: Error) => error.message);
      expect(outcome).toMatch(/^64 MB: 0\n(.*\n)*4096 MB: 137\n|used up its 256 MB of memory/);
    });

    test('the container is ended when unlinked open files exceed the disk limit', async () => {
      const hold = (fd: number) => `exec ${fd}>gone; rm gone; head -c 30000000 /dev/zero >&${fd}`;
      const { failure_reason } = await probe.ended(`${[3, 4, 5].map(hold).join('; ')}; sleep 60`);
      expect(failure_reason).toBe('disk_limit');
    });
  },
);
