/** Hostile programs in the real sandbox: each tries what must not succeed, and says what came of it. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  bubblewrapFeatures,
  startTestWorker,
  type TestWorker,
  until,
} from '../packages/worker/src/testing/test-worker.ts';
import { fakeAssignment } from './fakes/worker-service.ts';

const features = await bubblewrapFeatures();
const works = features !== undefined;
const limitsMemory = features?.includes('cgroup') === true;
const asRoot = process.getuid?.() === 0;
const secret = `host-secret-${process.pid}`;

describe.skipIf(!works)('a hostile program in a bubblewrap sandbox', () => {
  let it: TestWorker;
  let hostFolder: string;
  let number = 0;

  beforeAll(async () => {
    hostFolder = await mkdtemp(path.join(os.tmpdir(), 'runyard-host-'));
    await writeFile(path.join(hostFolder, 'key'), secret, { mode: 0o644 });
    it = await startTestWorker({
      settings: {
        RUNYARD_SANDBOX_MEMORY_MB: '256',
        RUNYARD_SANDBOX_PROCESSES: '64',
        RUNYARD_SANDBOX_TMP_MB: '16',
        RUNYARD_SANDBOX_DISK_MB: '64',
      },
    });
    await writeFile(path.join(it.dataDir, 'bootstrap-key'), secret, { mode: 0o644 });
  });
  afterAll(async () => {
    await it[Symbol.asyncDispose]();
    await rm(hostFolder, { recursive: true });
  });

  /** Runs the script as the agent and returns what it printed; it always exits with 1 so that the output is told. */
  const attempt = async (script: string): Promise<string> => {
    const { message } = await outcome(`{ ${script}\n} 2>&1; exit 1`);
    return message.slice(message.indexOf('\n', message.indexOf('\n') + 1) + 1);
  };
  const outcome = async (
    script: string,
  ): Promise<{ message: string; failure_reason?: string | undefined; exit_code?: number | undefined }> => {
    const id = `probe-${++number}`;
    it.service.send(fakeAssignment(id, ['--fixture', 'sh', script]));
    return it.service.waitFor('task_failed', (data) => data.execution_id === id);
  };
  /** Runs JavaScript in the sandbox's own Node. */
  const attemptInNode = (script: string): Promise<string> => attempt(`cat >p.mjs <<'END'\n${script}\nEND\nnode p.mjs`);

  test('sees none of the machine’s files', async () => {
    const files = [
      path.join(hostFolder, 'key'),
      path.join(it.dataDir, 'bootstrap-key'),
      '/etc/shadow',
      '/root',
      '/home/agent/../../root',
      '/var/lib',
      '/boot',
      '/sys',
      process.cwd(),
    ];
    const seen = await attempt(
      `for f in ${files.join(' ')}; do cat "$f" || ls "$f"; done; ls / /home /run /var; cat /etc/passwd`,
    );
    expect(seen).not.toContain(secret);
    for (const file of files) expect(seen).toContain(`'${file}': No such file`);
    expect(seen).not.toMatch(/^root:[^x]/m);
    const allowed = 'bin dev etc home lib lib32 lib64 libx32 opt proc run sbin tmp usr var workspace'.split(' ');
    for (const name of (await attempt('ls -A /')).trim().split(/\s+/)) expect(allowed).toContain(name);
  });

  test('gets to no file of the machine by symbolic links, open descriptors or the roots of other processes', async () => {
    const target = path.join(hostFolder, 'key');
    const seen = await attempt(
      [
        `ln -s ${target} link; cat link`,
        `ln -s / up; cat up${target}`,
        `cat ../../../../../..${target}`,
        `for p in /proc/[0-9]*; do cat $p/root${target}; cat $p/cwd/../..${target}; done`,
        `ls -l /proc/1/fd /proc/self/fd; for n in 3 4 5 6 7 8 9 10; do cat /proc/1/fd/$n/..${target} <&$n; done`,
      ].join('\n'),
    );
    expect(seen).not.toContain(secret);
    expect(seen).not.toMatch(/-> \/(tmp|var|work|root)\b/);
  });

  test('a link that it leaves in its workspace leads nobody astray when the workspace is removed', async () => {
    await attempt(`ln -s ${hostFolder} away; mkdir -p ${'d/'.repeat(200)}; ln -s / root; chmod 0 d`);
    await until(async () => (await readdir(path.join(it.worker.stateRoot, 'trash')).catch(() => [])).length === 0);
    expect(await readFile(path.join(hostFolder, 'key'), 'utf8')).toBe(secret);
  });

  test('sees no process but its own, and none of the environment of service and worker', async () => {
    const seen = await attempt(
      'for p in /proc/[0-9]*; do tr "\\0" " " <$p/cmdline; echo; tr "\\0" "\\n" <$p/environ; done',
    );
    expect(seen).not.toMatch(/vitest|RUNYARD_API_KEY|RUNYARD_DATA_DIR|test-key|VITEST/);
    expect(seen).not.toContain('--setenv');
    const pids = (await attempt('ls -d /proc/[0-9]*')).trim().split('\n').length;
    expect(pids).toBeLessThan(8);
    const first = await attempt('tr "\\0" "\\n" </proc/1/environ');
    for (const name of [...first.matchAll(/^([A-Za-z_]+)=/gm)].map(([, found]) => found)) {
      expect([
        'PATH',
        'HOME',
        'USER',
        'LANG',
        'TERM',
        'NODE_COMPILE_CACHE',
        'RUNYARD_RELAY_SOCKET',
        'RUNYARD_RUN_TOKEN',
        'RUNYARD_COMMAND',
        'TASK_ID',
        'WARP_SERVER_ROOT_URL',
        'PWD',
      ]).toContain(name);
    }
  });

  test('nothing of a run’s environment can be read from the machine’s process list', async () => {
    const id = 'visible';
    it.service.send(
      fakeAssignment(id, ['--fixture', 'sh', 'sleep 0.4; exit 1'], { RUNYARD_RUN_TOKEN: 'token-nobody-sees' }),
    );
    await it.service.waitFor('sandbox_ready', (data) => data.execution_id === id);
    const list = execFileSync('ps', ['axww', '-o', 'args'], { encoding: 'utf8' });
    expect(list).toContain('runyard-sandbox:');
    expect(list).not.toContain('token-nobody-sees');
    await it.service.waitFor('task_failed', (data) => data.execution_id === id);
  });

  test('reaches neither the machine’s loopback nor any network', async () => {
    let reached = false;
    const server = createServer(() => {
      reached = true;
    });
    server.listen(0, '0.0.0.0');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const addresses = [
      '127.0.0.1',
      '::1',
      ...Object.values(os.networkInterfaces())
        .flatMap((list) => list ?? [])
        .filter(({ internal, family }) => !internal && family === 'IPv4')
        .map(({ address }) => address),
      '169.254.169.254',
      '8.8.8.8',
    ];
    const seen = await attemptInNode(`import net from 'node:net';
      for (const host of ${JSON.stringify(addresses)}) await new Promise((r) => { const s = net.connect({ host, port: ${port}, timeout: 500 }); for (const e of ['connect','error','timeout']) s.on(e, (x) => { console.log(host, e, x?.code ?? ''); s.destroy(); r(); }); });`);
    server.close();
    expect(seen).not.toContain('connect \n');
    expect(reached).toBe(false);
    for (const address of addresses) expect(seen).toContain(`${address} error`);
  });

  test('abstract sockets of the machine are out of reach', async () => {
    const server = createServer((socket) => socket.end(secret));
    server.listen(`\0runyard-probe-${process.pid}`);
    await once(server, 'listening');
    const seen = await attemptInNode(`import net from 'node:net';
      const s = net.connect('\\0runyard-probe-${process.pid}'); s.on('data', (d) => console.log(String(d))); s.on('error', (e) => console.log(e.code));`);
    server.close();
    expect(seen.trim()).toBe('ECONNREFUSED');
  });

  test('the relay gives only what is for agents', async () => {
    const before = it.service.requests.length;
    const seen = await attemptInNode(`import net from 'node:net';
      const targets = ['/api/v1/harness-support/ok', '/api/v1/agent/runs', '/api/v1/gateway/../agent/runs', '/api/v1/gateway/%2e%2e/agent/runs', '/api/v1/gateway/..%2fagent/runs', 'http://127.0.0.1:${it.service.port}/api/v1/agent/runs', '/healthz'];
      for (const t of targets) await new Promise((r) => { const s = net.connect(process.env.RUNYARD_RELAY_SOCKET ?? '/run/runyard/relay.sock'); let a = ''; s.on('data', (d) => a += d); s.on('close', () => { console.log(a.split(' ')[1]); r(); }); s.write('GET ' + t + ' HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n'); });`);
    expect(seen.trim().split('\n')).toEqual(['200', '403', '403', '403', '403', '403', '403']);
    expect(it.service.requests.slice(before)).toEqual(['GET /api/v1/harness-support/ok']);
  });

  test('a fork bomb stays small and ends with its sandbox', async () => {
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
    'a memory hog is killed, the machine and the worker live, and the reason is told',
    async () => {
      const { failure_reason, message } = await outcome(
        `node -e 'const k = []; for (;;) k.push(Buffer.alloc(16 << 20, 1))'; exit 1`,
      );
      expect(failure_reason).toBe('out_of_memory');
      expect(message).toContain('256 MB');
      expect((await attempt('echo alive')).trim()).toBe('alive');
    },
  );

  test.runIf(limitsMemory)('memory that is spread over many processes is limited too', async () => {
    const { failure_reason } = await outcome(
      `for i in 1 2 3 4 5 6; do node -e 'const b = Buffer.alloc(80 << 20, 1); setTimeout(() => console.log(b.length), 3000)' & done; wait; exit 1`,
    );
    expect(failure_reason).toBe('out_of_memory');
  });

  test('/tmp and /dev/shm are full at their limit, and the rest of what is in memory cannot be written', async () => {
    const seen = await attempt(
      'head -c 30000000 /dev/zero >/tmp/fill; stat -c %s /tmp/fill; rm /tmp/fill; head -c 30000000 /dev/zero >/dev/shm/fill; stat -c %s /dev/shm/fill; rm /dev/shm/fill; for d in / /dev /run /run/runyard /etc /home /var /opt; do touch $d/x; done',
    );
    expect(seen.match(/No space left/g)).toHaveLength(2);
    expect(seen.match(/^16777216$/gm)).toHaveLength(2);
    expect(seen.match(/Read-only file system/g)).toHaveLength(8);
  });

  test('a workspace that is filled ends its sandbox, with the reason', async () => {
    const { failure_reason, message } = await outcome(
      'i=0; while :; do head -c 10000000 /dev/zero >fill-$i; i=$((i+1)); [ $i -gt 30 ] && sleep 10; done',
    );
    expect(failure_reason).toBe('disk_limit');
    expect(message).toContain('64 MB');
  });

  test('one file cannot be larger than the whole disk limit', async () => {
    const seen = await attempt('trap "" XFSZ; head -c 100000000 /dev/zero >one; stat -c %s one');
    expect(Number(/^\d+$/m.exec(seen)?.[0])).toBeLessThanOrEqual(64 * 1024 * 1024);
  });

  test('makes no user namespace, mounts nothing and gains no rights by setuid programs', async () => {
    const seen = await attempt(
      [
        'unshare -U true && echo GAINED-userns',
        'unshare -Ur sh -c "mount -t tmpfs x /tmp" && echo GAINED-mount',
        'mount --bind /workspace /usr && echo GAINED-bind',
        'bwrap --unshare-user --ro-bind / / true && echo GAINED-bwrap',
        'su -c true && echo GAINED-su',
        'chroot / true && echo GAINED-chroot',
        'mknod disk b 8 0 && echo GAINED-device',
        'umount /workspace && echo GAINED-umount',
        'hostname owned && echo GAINED-hostname',
        'grep -E "CapEff|CapPrm|CapBnd|NoNewPrivs" /proc/self/status',
      ].join('\n'),
    );
    expect(seen).not.toContain('GAINED');
    expect(seen.match(/^Cap\w+:\s+0{16}$/gm)).toHaveLength(3);
    expect(seen).toMatch(/NoNewPrivs:\s+1/);
  });

  test('kills and traces only what is its own', async () => {
    const seen = await attempt(
      `kill -9 ${process.pid} && echo GAINED; kill -9 -1; kill -9 1; echo still; for p in 2 3 4 5 6 7 8 9; do cat /proc/$p/mem >/dev/null 2>&1 && echo GAINED-mem; done; echo end`,
    );
    expect(seen).not.toContain('GAINED');
    expect((await attempt('echo alive')).trim()).toBe('alive');
  });

  test('writes nothing of the agent program that other runs use', async () => {
    const seen = await attempt(
      'for f in node agent/main.mjs bin/node agent/cache/x new; do echo x >>/opt/runyard/$f && echo GAINED; done; rm -rf /opt/runyard/bin && echo GAINED; chmod 777 /opt/runyard && echo GAINED; find /opt/runyard -writable',
    );
    expect(seen).not.toContain('GAINED');
    expect(seen.match(/Read-only file system/g)?.length).toBeGreaterThanOrEqual(5);
  });

  test('writes nothing below /usr, and devices are the harmless ones', async () => {
    const seen = await attempt(
      'for f in /usr/x /usr/bin/x /etc/passwd /etc/hosts; do echo x >>$f && echo GAINED; done; ls /dev',
    );
    expect(seen).not.toContain('GAINED');
    expect(seen).not.toMatch(/^(sd|vd|nvme|mem|kmem|kvm|loop|fuse|disk)/m);
  });

  test.runIf(asRoot)('each sandbox has a user of its own, whose folders the others cannot open', async () => {
    const uids = new Set<number>();
    for (const name of ['one', 'two'])
      it.service.send(fakeAssignment(name, ['--fixture', 'sh', 'touch here; sleep 0.5; exit 1']));
    const sandboxes = path.join(it.worker.stateRoot, 's');
    await until(async () => {
      uids.clear();
      for (const id of await readdir(sandboxes)) {
        const found = await stat(path.join(sandboxes, id, 'workspace')).catch(() => undefined);
        if (found === undefined) continue;
        expect(found.mode & 0o777).toBe(0o700);
        uids.add(found.uid);
      }
      return uids.size >= 2;
    });
    expect([...uids].every((uid) => uid >= 70_000)).toBe(true);
    for (const name of ['one', 'two']) await it.service.waitFor('task_failed', (data) => data.execution_id === name);
  });
});
