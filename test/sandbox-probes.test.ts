/** Tests hostile programs in the real sandbox. Each program tries forbidden actions and prints the results. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bubblewrapFeatures, until } from '../packages/worker/test/worker.ts';
import { fakeAssignment } from './fakes/worker-service.ts';
import { openSandboxProbe, type SandboxProbe, secret } from './support/sandbox-probe.ts';

const works = (await bubblewrapFeatures()) !== undefined;
const asRoot = process.getuid?.() === 0;

describe.skipIf(!works)('a hostile program in a bubblewrap sandbox', () => {
  let probe: SandboxProbe;
  beforeAll(async () => {
    probe = await openSandboxProbe();
  });
  afterAll(() => probe[Symbol.asyncDispose]());
  const attempt = (script: string) => probe.attempt(script);
  /** A script that runs until `tellToGo`, so that the test has enough time to read its process. */
  const untilToldToGo = 'while ! [ -e /workspace/go ]; do sleep 0.05; done; exit 1';
  const tellToGo = async () => {
    const sandboxes = path.join(probe.it.worker.stateRoot, 's');
    for (const id of await readdir(sandboxes))
      await writeFile(path.join(sandboxes, id, 'workspace/go'), '').catch(() => undefined);
  };
  const attemptInNode = (script: string) => probe.attemptInNode(script);

  test('cannot make system calls that only attacks need, or open sockets of other kinds than its network needs', async () => {
    // System calls by their numbers on x64: keyctl, bpf, mount, perf_event_open, io_uring_setup. Sockets: raw IP, packets, ciphers,
    // virtual machines.
    const script = [
      'for (250, 321, 165, 298, 425) { $! = 0; syscall($_, 0, 0, 0, 0, 0, 0); print "$_=", $! + 0, " " }',
      'for (2, 17, 38, 40) { $! = 0; print "family$_=", syscall(41, $_, 1, 0) < 0 ? $! + 0 : 0, " " }',
    ];
    if (process.arch === 'x64')
      expect(await attempt(`perl -e '${script.join('; ')}'`)).toContain(
        '250=1 321=1 165=1 298=1 425=38 family2=0 family17=97 family38=97 family40=97',
      );
  });

  test('can open in one process only a share of the open files that the sandbox may have', async () => {
    const seen = await attempt('ulimit -n 65536 || echo refused; ulimit -Hn');
    expect(seen).toContain('refused');
    // The share is RUNYARD_SANDBOX_OPEN_FILES, divided by the number of processes that the settings of this test allow in a sandbox.
    expect(Number(/^\d+$/m.exec(seen)?.[0])).toBeLessThanOrEqual(393_216 / 64);
  });

  test('sees no file of the machine', async () => {
    const files = [
      path.join(probe.hostFolder, 'key'),
      path.join(probe.it.dataDir, 'bootstrap-key'),
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

  test('reaches no file of the machine by symbolic links, open descriptors or the roots of other processes', async () => {
    const target = path.join(probe.hostFolder, 'key');
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

  test('cannot make the removal of its workspace follow a link', async () => {
    await attempt(`ln -s ${probe.hostFolder} away; mkdir -p ${'d/'.repeat(200)}; ln -s / root; chmod 0 d`);
    await until(
      async () => (await readdir(path.join(probe.it.worker.stateRoot, 'trash')).catch(() => [])).length === 0,
    );
    expect(await readFile(path.join(probe.hostFolder, 'key'), 'utf8')).toBe(secret);
  });

  test('sees only processes of its own sandbox, and not the environment of service and worker', async () => {
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
        'RUNYARD_RELAY_SOCKET',
        'RUNYARD_RUN_FOLDERS',
        'RUNYARD_RUN_TOKEN_FD',
        'RUNYARD_SANDBOX_OWNER',
        'RUNYARD_COMMAND',
        'TASK_ID',
        'WARP_SERVER_ROOT_URL',
        'PWD',
      ]).toContain(name);
    }
  });

  test('has an environment that other users of the machine cannot read in the process list', async () => {
    const id = 'visible';
    probe.it.service.send(
      fakeAssignment(id, ['--fixture', 'sh', untilToldToGo], { RUNYARD_RUN_TOKEN: 'token-nobody-sees' }),
    );
    await probe.it.service.waitFor('sandbox_ready', (data) => data.execution_id === id);
    const list = execFileSync('ps', ['axww', '-o', 'args'], { encoding: 'utf8' });
    expect(list).toContain('runyard-sandbox:');
    expect(list).not.toContain('token-nobody-sees');
    await tellToGo();
    await probe.it.service.waitFor('task_failed', (data) => data.execution_id === id);
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
      for (const host of ${JSON.stringify(addresses)}) await new Promise((r) => { const s = net.connect({ host, port: ${port}, timeout: 10_000 }); for (const e of ['connect','error','timeout']) s.on(e, (x) => { console.log(host, e, x?.code ?? ''); s.destroy(); r(); }); });`);
    server.close();
    expect(seen).not.toContain('connect \n');
    expect(reached).toBe(false);
    for (const address of addresses) expect(seen).toContain(`${address} error`);
  });

  test('cannot reach abstract sockets of the machine', async () => {
    const server = createServer((socket) => socket.end(secret));
    server.listen(`\0runyard-probe-${process.pid}`);
    await once(server, 'listening');
    const seen = await attemptInNode(`import net from 'node:net';
      const s = net.connect('\\0runyard-probe-${process.pid}'); s.on('data', (d) => console.log(String(d))); s.on('error', (e) => console.log(e.code));`);
    server.close();
    expect(seen.trim()).toBe('ECONNREFUSED');
  });

  test('can use only the routes for agents through the relay', async () => {
    const before = probe.it.service.requests.length;
    const seen = await attemptInNode(`import net from 'node:net';
      const targets = ['/api/v1/harness-support/ok', '/api/v1/agent/runs', '/api/v1/gateway/../agent/runs', '/api/v1/gateway/%2e%2e/agent/runs', '/api/v1/gateway/..%2fagent/runs', 'http://127.0.0.1:${probe.it.service.port}/api/v1/agent/runs', '/healthz'];
      for (const t of targets) await new Promise((r) => { const s = net.connect(process.env.RUNYARD_RELAY_SOCKET ?? '/run/runyard/relay.sock'); let a = ''; s.on('data', (d) => a += d); s.on('close', () => { console.log(a.split(' ')[1]); r(); }); s.write('GET ' + t + ' HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n'); });`);
    expect(seen.trim().split('\n')).toEqual(['200', '403', '403', '403', '403', '403', '403']);
    expect(probe.it.service.requests.slice(before)).toEqual(['GET /api/v1/harness-support/ok']);
  });

  test('cannot make a user namespace, mount a file system or gain rights by setuid programs', async () => {
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

  test('can kill and trace only processes of its own sandbox', async () => {
    const seen = await attempt(
      `kill -9 ${process.pid} && echo GAINED; kill -9 -1; kill -9 1; echo still; for p in 2 3 4 5 6 7 8 9; do cat /proc/$p/mem >/dev/null 2>&1 && echo GAINED-mem; done; echo end`,
    );
    expect(seen).not.toContain('GAINED');
    expect((await attempt('echo alive')).trim()).toBe('alive');
  });

  test('cannot write to the agent program that other runs use', async () => {
    const seen = await attempt(
      'for f in node agent/main.cjs bin/node agent/cache/x new; do echo x >>/opt/runyard/$f && echo GAINED; done; rm -rf /opt/runyard/bin && echo GAINED; chmod 777 /opt/runyard && echo GAINED; find /opt/runyard -writable',
    );
    expect(seen).not.toContain('GAINED');
    expect(seen.match(/Read-only file system/g)?.length).toBeGreaterThanOrEqual(5);
  });

  test('cannot write below /usr and has only harmless devices', async () => {
    const seen = await attempt(
      'for f in /usr/x /usr/bin/x /etc/passwd /etc/hosts; do echo x >>$f && echo GAINED; done; ls /dev',
    );
    expect(seen).not.toContain('GAINED');
    expect(seen).not.toMatch(/^(sd|vd|nvme|mem|kmem|kvm|loop|fuse|disk)/m);
  });

  test.runIf(asRoot)('has a user of its own, whose folders other sandboxes cannot open', async () => {
    const uids = new Set<number>();
    for (const name of ['one', 'two']) probe.it.service.send(fakeAssignment(name, ['--fixture', 'sh', untilToldToGo]));
    const sandboxes = path.join(probe.it.worker.stateRoot, 's');
    await until(async () => {
      uids.clear();
      for (const id of await readdir(sandboxes)) {
        const found = await stat(path.join(sandboxes, id, 'workspace')).catch(() => undefined);
        // Wait, because the worker sets the owner of the folder shortly after it has created the folder.
        if (found === undefined || found.uid === 0) continue;
        expect(found.mode & 0o777).toBe(0o700);
        uids.add(found.uid);
      }
      return uids.size >= 2;
    });
    expect([...uids].every((uid) => uid >= 70_000)).toBe(true);
    // The two users found may belong to sandboxes that still wait for a run, so wait until the sandboxes of both runs are ready.
    for (const name of ['one', 'two'])
      await probe.it.service.waitFor('sandbox_ready', (data) => data.execution_id === name);
    await tellToGo();
    for (const name of ['one', 'two'])
      await probe.it.service.waitFor('task_failed', (data) => data.execution_id === name);
  });
});
