import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeRuntime } from '../../runtime/runtime.ts';
import { inside } from './arguments.ts';
import { findBubblewrap } from './find-bubblewrap.ts';
import { openTemporaryGround, type TemporaryGround } from './ground.ts';
import { prepareSandbox } from './prepare.ts';

const program = await findBubblewrap();
const busybox = await readFile('/bin/busybox').catch(() => undefined);
const problem = program === undefined ? 'bubblewrap is missing' : busybox === undefined ? 'busybox is missing' : null;
const limits = { memoryMb: 1024, processes: 100, tmpMb: 16, diskMb: 256, openFiles: 4096, cpus: 0 };
const silent = { info: () => {}, warn: () => {} };

/** A system of an attacker: its libraries, settings and programs are not those of Debian. */
async function makeHostileTree(folder: string): Promise<void> {
  const libraries = ['lib/x86_64-linux-gnu', 'lib/aarch64-linux-gnu', 'lib64'];
  for (const name of ['bin', 'sbin', 'local/sbin', ...libraries])
    await mkdir(path.join(folder, 'usr', name), { recursive: true });
  for (const name of ['etc', 'var/lib']) await mkdir(path.join(folder, name), { recursive: true });
  await writeFile(path.join(folder, 'usr/bin/busybox'), busybox ?? '', { mode: 0o755 });
  for (const name of ['sh', 'mv', 'rm', 'ls', 'cat', 'ln', 'touch', 'id', 'mount', 'umount', 'mkdir', 'echo'])
    await symlink('busybox', path.join(folder, 'usr/bin', name));
  for (const library of libraries)
    for (const name of ['libc.so.6', 'libm.so.6', 'libstdc++.so.6', 'libdl.so.2', 'ld-linux-x86-64.so.2', 'evil.so'])
      await writeFile(path.join(folder, 'usr', library, name), 'this is not a library', { mode: 0o755 });
  await writeFile(path.join(folder, 'etc/ld.so.preload'), '/usr/lib64/evil.so\n');
  await writeFile(path.join(folder, 'etc/nsswitch.conf'), 'passwd: evil\n');
  await writeFile(path.join(folder, 'etc/passwd'), 'agent:x:0:0:agent:/home/agent:/bin/sh\n');
  await writeFile(path.join(folder, 'usr/local/sbin/sudo'), '#!/bin/sh\necho rights of nobody; "$@"\n', {
    mode: 0o755,
  });
}

describe.skipIf(problem !== null)(
  `a sandbox with its own system${problem === null ? '' : ` (skipped: ${problem})`}`,
  () => {
    let opened: TemporaryGround;
    let folder: string;
    let runtime: string;
    beforeAll(async () => {
      folder = await mkdtemp(path.join(os.tmpdir(), 'runyard-own-system-'));
      await chmod(folder, 0o711);
      await makeHostileTree(path.join(folder, 'tree'));
      opened = await openTemporaryGround({ program: program ?? '', limits, log: silent });
      const entry = fileURLToPath(new URL('../../../../agent/src/main.ts', import.meta.url));
      runtime = await makeRuntime({ stateRoot: folder, entry, portableIn: inside.runtime, log: silent });
    }, 120_000);
    afterAll(async () => {
      await opened?.close();
      await rm(folder, { recursive: true, force: true });
    });

    async function run(...command: string[]): Promise<string> {
      const contents = {
        runtime,
        relay: async (socketPath: string) => {
          await writeFile(socketPath, '');
          await chmod(socketPath, 0o666);
          return { close: async () => {} };
        },
      };
      const sandbox = await prepareSandbox(opened.ground, contents);
      try {
        await sandbox.openSystem({ tree: path.join(folder, 'tree'), runtime });
        const env = { PATH: '/usr/local/sbin:/usr/bin', HOME: '/home/agent' };
        const { exitCode, outputTail } = await sandbox.run(command, env).ended;
        return `${outputTail}${exitCode === 0 ? '' : `exit code ${exitCode}`}`;
      } finally {
        await sandbox.dispose();
      }
    }
    const shell = (...lines: string[]) => run('/bin/sh', '-c', lines.join('\n'));

    test('can change its programs and settings, and no other sandbox sees the changes', async () => {
      expect(await shell('touch /usr/bin/new /etc/new /var/lib/new /run/new && ls /usr/bin/new /etc/new')).toBe(
        '/etc/new\n/usr/bin/new\n',
      );
      expect(await shell('ls /usr/bin/new /etc/new 2>/dev/null; echo none')).toBe('none\n');
    });

    test("runs the agent's Node with the libraries of the worker, not with those of the system", async () => {
      const script = "require('node:dns').lookup('localhost', () => console.log('runs', process.getuid()))";
      expect(await run(`${inside.runtime}/agent/node`, '--eval', script)).toBe('runs 1000\n');
    });

    test('gains no right by its own sudo and /etc/passwd', async () => {
      expect(await shell('sudo id -u; sudo mount -t tmpfs x /mnt 2>/dev/null || echo refused')).toBe(
        'rights of nobody\n1000\nrights of nobody\nrefused\n',
      );
    });

    test("cannot replace, move or hide Runyard's files and sockets", async () => {
      const attacks = [
        'mv /opt /opt2',
        'mv /opt/runyard /opt/other',
        'rm -rf /opt/runyard',
        'touch /opt/new',
        'touch /opt/runyard/agent/main.cjs',
        'mv /run /run2',
        'mv /run/runyard /run/other',
        'rm -rf /run/runyard',
        'touch /run/runyard/new',
        'mv /run/runyard/relay.sock /run/runyard/other',
        'mv /usr /usr2',
        'mv /etc /etc2',
        'mv /home /home2',
        'mv /home/agent /home/b',
        'mv /workspace /w',
        'ln -s /tmp /new',
        'umount /opt/runyard',
        'umount /run/runyard',
        'mount -t tmpfs x /opt',
      ];
      const lines = attacks.map((attack) => `${attack} 2>/dev/null && echo 'done: ${attack}'`);
      const left = await shell(...lines, `ls ${inside.runtime}/agent/node /run/runyard`);
      expect(left).toBe(`${inside.runtime}/agent/node\n\n/run/runyard:\nrelay.sock\n`);
    });
  },
);
