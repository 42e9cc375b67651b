/** Tests programs in the real sandbox that use as much memory, disk space and as many processes as they can. */
import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bubblewrapFeatures } from '../packages/worker/test/worker.ts';
import { openSandboxProbe, type SandboxProbe } from './support/sandbox-probe.ts';

const features = await bubblewrapFeatures();
const limitsDisk = features?.includes('disk-quota') === true;
const limitsMemory = features?.includes('cgroup') === true;

describe.skipIf(features === undefined)('a hostile program in a bubblewrap sandbox', () => {
  let probe: SandboxProbe;
  beforeAll(async () => {
    probe = await openSandboxProbe();
  });
  afterAll(() => probe[Symbol.asyncDispose]());
  const attempt = (script: string) => probe.attempt(script);
  const outcome = (script: string) => probe.outcome(script);

  test('can start only a limited number of processes, and a fork bomb ends with its sandbox', async () => {
    const mark = `471300${process.pid}`;
    const seen = await attempt(
      `i=0; while [ $i -lt 300 ]; do sleep ${mark} & i=$((i+1)); done; ls -d /proc/[0-9]* | wc -l`,
    );
    expect(seen).toMatch(/fork|Resource temporarily unavailable|Cannot fork/);
    const real = await outcome('b() { b | b & }; b; sleep 1; exit 1');
    expect(real.exit_code).not.toBe(0);
    const list = execFileSync('ps', ['axww', '-o', 'args'], { encoding: 'utf8' });
    expect(list).not.toContain(`sleep ${mark}`);
  });

  test.runIf(limitsMemory)(
    'is killed over the memory limit, the reason is reported, and the worker continues',
    async () => {
      const { failure_reason, message } = await outcome(
        `node -e 'const k = []; for (;;) k.push(Buffer.alloc(16 << 20, 1))'; exit 1`,
      );
      expect(failure_reason).toBe('out_of_memory');
      expect(message).toContain('256 MB');
      expect((await attempt('echo alive')).trim()).toBe('alive');
    },
  );

  test.runIf(limitsMemory)('cannot exceed the memory limit with many processes', async () => {
    const { failure_reason } = await outcome(
      `for i in 1 2 3 4 5 6; do node -e 'const b = Buffer.alloc(80 << 20, 1); setTimeout(() => console.log(b.length), 15000)' & done; wait; exit 1`,
    );
    expect(failure_reason).toBe('out_of_memory');
  });

  test('can fill /tmp and /dev/shm only to their limit, and cannot write to other file systems in memory', async () => {
    const seen = await attempt(
      'head -c 30000000 /dev/zero >/tmp/fill; stat -c %s /tmp/fill; rm /tmp/fill; head -c 30000000 /dev/zero >/dev/shm/fill; stat -c %s /dev/shm/fill; rm /dev/shm/fill; for d in / /dev /run /run/runyard /etc /home /var /opt; do touch $d/x; done',
    );
    expect(seen.match(/No space left/g)).toHaveLength(2);
    expect(seen.match(/^16777216$/gm)).toHaveLength(2);
    expect(seen.match(/Read-only file system/g)).toHaveLength(8);
  });

  test('ends with its sandbox and a reason when the workspace is full', async () => {
    const { failure_reason, message } = await outcome(
      'i=0; while :; do head -c 10000000 /dev/zero >fill-$i; i=$((i+1)); [ $i -gt 30 ] && sleep 10; done',
    );
    expect(failure_reason).toBe('disk_limit');
    expect(message).toContain('64 MB');
  });

  test('cannot exceed the disk limit with open files that it has unlinked', async () => {
    const hold = (fd: number) => `exec ${fd}>gone; rm gone; head -c 30000000 /dev/zero >&${fd}`;
    const { failure_reason } = await outcome(`${[3, 4, 5].map(hold).join('; ')}; exec sleep 60`);
    expect(failure_reason).toBe('disk_limit');
  });

  test.runIf(limitsDisk)(
    'has its workspace and home on a separate disk, which is slightly larger than the limit',
    async () => {
      const seen = await attempt('df --block-size=1 --output=size,target /workspace $HOME | tail -n 2');
      const sizes = [...seen.matchAll(/^ *(\d+) \/(workspace|home)/gm)].map(([, size]) => Number(size));
      expect(sizes).toHaveLength(2);
      for (const size of sizes) {
        expect(size).toBeGreaterThan(64 * 1024 * 1024);
        expect(size).toBeLessThan(110 * 1024 * 1024);
      }
    },
  );

  test('cannot create a file that is larger than the disk limit', async () => {
    const seen = await attempt('trap "" XFSZ; truncate -s 100000000 one; stat -c %s one');
    expect(seen).toContain('File too large');
    expect(Number(/^\d+$/m.exec(seen)?.[0])).toBeLessThanOrEqual(64 * 1024 * 1024);
  });
});
