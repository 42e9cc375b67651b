import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { findCgroups } from './hierarchy.ts';

let root: string;
beforeEach(() => {
  root = newFolder();
});

const mount = (type: string, point: string, options: string, mountRoot = '/'): string =>
  `30 23 0:26 ${mountRoot} ${path.join(root, point)} rw,relatime shared:4 - ${type} ${type} rw,${options}`;

async function group(place: string, handedDown: string): Promise<void> {
  await mkdir(path.join(root, place), { recursive: true });
  await writeFile(path.join(root, place, 'cgroup.subtree_control'), handedDown);
}

test('findCgroups, in version 1, makes a folder below the group of this process in each hierarchy', async () => {
  await mkdir(path.join(root, 'memory/own/group'), { recursive: true });
  await mkdir(path.join(root, 'pids'), { recursive: true });
  const mounts = [
    mount('cgroup', 'memory', 'memory'),
    mount('cgroup', 'pids', 'pids'),
    mount('cgroup2', 'unified', 'nsdelegate'),
  ].join('\n');
  const found = await findCgroups('runyard-x', { mounts, membership: '8:pids:/\n4:memory:/own/group\n0::/\n' });
  expect(found).toEqual({
    ok: true,
    hierarchy: {
      version: 1,
      memory: path.join(root, 'memory/own/group/runyard-x'),
      pids: path.join(root, 'pids/runyard-x'),
    },
  });
  expect(await readdir(path.join(root, 'memory/own/group'))).toEqual(['runyard-x']);
});

test('findCgroups finds the group of this process in a container whose version 1 mounts begin at the group of the container', async () => {
  for (const name of ['memory', 'pids', 'cpu']) await mkdir(path.join(root, name), { recursive: true });
  const mounts = [
    mount('cgroup', 'memory', 'memory', '/docker/abc'),
    mount('cgroup', 'pids', 'pids', '/docker/abc'),
    mount('cgroup', 'cpu', 'cpu,cpuacct', '/docker/abc'),
  ].join('\n');
  const found = await findCgroups('runyard-x', { mounts, membership: '8:pids:/docker/abc\n4:memory:/docker/abc\n' });
  expect(found).toMatchObject({
    ok: true,
    hierarchy: { memory: path.join(root, 'memory/runyard-x'), cpu: path.join(root, 'cpu/runyard-x') },
  });
  expect(await readFile(path.join(root, 'cpu/runyard-x/cpu.shares'), 'utf8')).toBe(
    String(2048 * os.availableParallelism()),
  );
});

test('findCgroups, in version 2, uses the nearest group above the group of this process that delegates the memory and pids controllers', async () => {
  await group('.', 'cpu memory pids');
  await group('user.slice', 'memory pids cpu');
  await group('user.slice/session.scope', '');
  const found = await findCgroups('runyard-x', {
    mounts: mount('cgroup2', '.', 'nsdelegate'),
    membership: '0::/user.slice/session.scope\n',
  });
  const folder = path.join(root, 'user.slice/runyard-x');
  expect(found).toEqual({ ok: true, hierarchy: { version: 2, memory: folder, pids: folder, cpu: folder } });
  expect(await readFile(path.join(folder, 'cgroup.subtree_control'), 'utf8')).toBe('+memory +pids +cpu');
  expect(await readFile(path.join(folder, 'cpu.weight'), 'utf8')).toBe(
    String(Math.min(200 * os.availableParallelism(), 10_000)),
  );
});

test('findCgroups, in version 2, delegates the controllers of an empty group from systemd, but not of a group with processes', async () => {
  const files = { mounts: mount('cgroup2', '.', 'nsdelegate'), membership: '0::/unit.service/worker\n' };
  await group('unit.service', '');
  await group('unit.service/worker', '');
  await writeFile(path.join(root, 'unit.service/cgroup.controllers'), 'cpu io memory pids\n');
  await writeFile(path.join(root, 'unit.service/cgroup.procs'), '17\n');
  expect((await findCgroups('runyard-x', files)).ok).toBe(false);
  await writeFile(path.join(root, 'unit.service/cgroup.procs'), '');
  const found = await findCgroups('runyard-x', files);
  // The file still has the text that was written. A real kernel would show the names without the plus signs.
  expect(await readFile(path.join(root, 'unit.service/cgroup.subtree_control'), 'utf8')).toBe('+memory +pids +cpu');
  expect(found).toMatchObject({ reason: expect.stringContaining('Delegate=yes') });
});

test('findCgroups, in version 2, returns the systemd setting to change if no group delegates the controllers', async () => {
  await group('.', 'cpu');
  const found = await findCgroups('runyard-x', { mounts: mount('cgroup2', '.', 'nsdelegate'), membership: '0::/\n' });
  expect(found).toMatchObject({ ok: false, reason: expect.stringContaining('Delegate=yes') });
});

test('findCgroups finds no cgroups if no cgroup file system is mounted', async () => {
  expect(await findCgroups('runyard-x', { mounts: '', membership: '' })).toEqual({
    ok: false,
    reason: 'no cgroup filesystem is mounted',
  });
});
