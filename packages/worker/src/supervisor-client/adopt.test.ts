import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { startTicks, thisProcess } from '@runyard/system/process-identity';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { adoptSandboxes } from './adopt.ts';
import { filesOf, supervisorsFolder, writeDurably, writeWhole } from './files.ts';
import { proofOf } from './proof.ts';
import { bootId } from './records.ts';

/**
 * Program that pretends to be a supervisor: it listens on the socket of the supervisor and answers each challenge with a proof from the
 * secret in its arguments.
 */
const impostor = `
  const { createHmac } = require('node:crypto');
  const [control, secret] = process.argv.slice(1);
  require('node:net').createServer((socket) => {
    socket.write(JSON.stringify({ nonce: 'n' }) + '\\n');
    socket.on('error', () => {}).on('data', (data) => {
      const { nonce } = JSON.parse(data);
      const proof = createHmac('sha256', secret).update('supervisor:' + nonce).digest('hex');
      socket.write(JSON.stringify({ proof }) + '\\n');
    });
  }).listen(control, () => console.log('ready'));`;

const id = '0123456789ab';
let stateRoot: string;
let folder: string;
let child: ChildProcess | undefined;
const warnings: string[] = [];
const log = { info: () => {}, warn: (_: object, message: string) => void warnings.push(message) };
const exit = { exitCode: 3, outOfMemory: false, outputTail: 'last words' };

beforeEach(async () => {
  stateRoot = newFolder();
  folder = path.join(supervisorsFolder(stateRoot), id);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(supervisorsFolder(stateRoot), 0o700);
  await writeFile(filesOf(folder).secret, 'the secret');
  warnings.length = 0;
});
afterEach(async () => {
  child?.kill('SIGKILL');
  child = undefined;
});

/** Starts a process that pretends to be the supervisor. Returns the identity of this process. */
async function pose(secret: string) {
  child = spawn(process.execPath, ['-e', impostor, filesOf(folder).control, secret], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (child.stdout) await once(child.stdout, 'data');
  const pid = child.pid ?? 0;
  return { ...thisProcess(), pid, start_ticks: startTicks(pid) ?? 0 };
}

function record(supervisor: object, boot = bootId()): void {
  const content = {
    boot_id: boot,
    process: supervisor,
    execution: { task_id: 'run', execution_id: 'execution' },
    limits: { memoryMb: 1, processes: 1, tmpMb: 1, diskMb: 1 },
    limited: false,
    spawn_ms: 1,
    workspace: '/workspace',
    runtime: '/runtime',
    traces: { id, stateRoot, label: 'label', variable: 'NAME=value' },
  };
  writeWhole(filesOf(folder).record, content);
}

test('a sandbox is adopted if its supervisor proves that it knows the secret', async () => {
  record(await pose('the secret'));
  const [found] = await adoptSandboxes(stateRoot, 60, log);
  expect(found).toMatchObject({ lives: true, record: { execution: { execution_id: 'execution' } } });
  found?.sandbox.letGo();
});

test('a sandbox is not adopted from a process that does not know the secret', async () => {
  record(await pose('another secret'));
  const adopting = adoptSandboxes(stateRoot, 60, log);
  // The record names this process, so the adoption tries again until the process ends.
  setTimeout(() => child?.kill('SIGKILL'), 300);
  expect(await adopting).toEqual([]);
  expect(warnings).toHaveLength(1);
});

test.each([
  [
    'of another start time',
    (is: Awaited<ReturnType<typeof pose>>) => record({ ...is, start_ticks: is.start_ticks + 1 }),
  ],
  ['of another boot of the machine', (is: Awaited<ReturnType<typeof pose>>) => record(is, 'another boot')],
])('a sandbox is not adopted from a process %s, although the process knows the secret', async (_, write) => {
  write(await pose('the secret'));
  expect(await adoptSandboxes(stateRoot, 60, log)).toEqual([]);
});

test('adoptSandboxes returns the end of a sandbox that ended while no worker was running', async () => {
  record({ ...thisProcess(), start_ticks: 1 });
  await writeDurably(filesOf(folder).end, exit);
  const [found] = await adoptSandboxes(stateRoot, 60, log);
  expect(found?.lives).toBe(false);
  expect(await found?.sandbox.ended).toEqual(exit);
});

test('adoptSandboxes ignores a damaged record', async () => {
  await writeFile(filesOf(folder).record, '{"boot_id":');
  expect(await adoptSandboxes(stateRoot, 60, log)).toEqual([]);
});

test('adoptSandboxes refuses a supervisor folder that other users may enter', async () => {
  await chmod(supervisorsFolder(stateRoot), 0o755);
  await expect(adoptSandboxes(stateRoot, 60, log)).rejects.toThrow('mode 0700');
});

test('a proof of the worker is not valid as a proof of the supervisor', () => {
  expect(proofOf('s', 'worker', 'n')).not.toBe(proofOf('s', 'supervisor', 'n'));
});

test('adoptSandboxes does not wait for a running supervisor that no longer has the recorded sandbox', async () => {
  record(thisProcess());
  const began = performance.now();
  expect(await adoptSandboxes(stateRoot, 60, log)).toEqual([]);
  expect(warnings).toEqual([expect.stringContaining('its agent had not started')]);
  expect(performance.now() - began).toBeLessThan(15_000);
});
