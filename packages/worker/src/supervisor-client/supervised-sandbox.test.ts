import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { thisProcess } from '@runyard/system/process-identity';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Addressed } from './channels.ts';
import type { LineHandlers } from './lines.ts';
import type { Order, Report } from './messages.ts';
import { keepPlaces, mostAtOnce, mostInAll, type Place, type SupervisorProcess } from './places.ts';
import { superviseSandbox } from './supervised-sandbox.ts';

const exit = { exitCode: 0, outOfMemory: false, outputTail: '' };
const launch = { args: [], env: {}, runToken: 'token' };
const stateRoot = mkdtempSync(path.join(os.tmpdir(), 'runyard-supervised-'));
const log = { info: () => {}, warn: () => {} };

interface PlayedSupervisor {
  readonly sent: Addressed<Order>[];
  say(sandbox: string, report: Report): void;
  /** Ends its process. */
  die(): void;
  readonly isClosed: () => boolean;
}

/** Returns places in supervisors that the test imitates. */
function playPlaces() {
  const supervisors: PlayedSupervisor[] = [];
  const places = keepPlaces(async (): Promise<SupervisorProcess> => {
    const sent: Addressed<Order>[] = [];
    const exited = Promise.withResolvers<void>();
    let handlers: LineHandlers<Addressed<Report>> | undefined;
    let isClosed = false;
    supervisors.push({
      sent,
      say: (sandbox, message) => handlers?.message({ sandbox, message }),
      die: () => handlers?.closed(),
      isClosed: () => isClosed,
    });
    return {
      id: String(supervisors.length),
      // A supervisor that has already ended, so no code waits for it.
      process: { ...thisProcess(), start_ticks: 1 },
      lines: {
        send: (order) => void sent.push(order),
        close: () => {
          isClosed = true;
          exited.resolve();
        },
        handle: (next) => {
          handlers = next;
        },
      },
      exited: exited.promise,
    };
  });
  const hold = (place: Place, id: string) =>
    superviseSandbox({
      ...place,
      folder: path.join(stateRoot, id),
      traces: { id, stateRoot, label: `no-such-label-${id}`, variable: `NO_SUCH=${id}` },
      log,
    });
  return { places, supervisors, hold };
}

afterAll(() => rmSync(stateRoot, { recursive: true }));
beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('separates the orders and reports of the sandboxes of a supervisor', async () => {
  const { places, supervisors, hold } = playPlaces();
  const first = hold(await places.take('first'), 'first');
  const second = hold(await places.take('second'), 'second');
  const prepared = [first.prepare({}, 60), second.prepare({}, 60)];
  expect(supervisors).toHaveLength(1);
  const [{ sent, say }] = supervisors as [PlayedSupervisor];
  say('second', { type: 'prepared', workspace: '/two' });
  say('first', { type: 'prepared', workspace: '/one' });
  expect(await Promise.all(prepared)).toEqual(['/one', '/two']);
  const spawned = first.spawn(launch);
  say('first', { type: 'started' });
  await spawned;
  say('first', { type: 'ended', exit });
  expect(await first.ended).toEqual(exit);
  await first.dispose();
  first.kill('kill');
  expect(sent.map(({ sandbox, message }) => `${sandbox} ${message.type}`)).toEqual([
    'first prepare',
    'second prepare',
    'first start',
  ]);
  second.kill('kill');
  expect(sent.at(-1)).toEqual({ sandbox: 'second', message: { type: 'kill', how: 'kill' } });
});

test('reports all sandboxes of a dead supervisor as lost, and no sandbox of another supervisor', async () => {
  vi.useRealTimers();
  const { places, supervisors, hold } = playPlaces();
  const ids = Array.from({ length: mostAtOnce + 1 }, (_, n) => `sandbox-${n}`);
  const sandboxes = [];
  for (const id of ids) sandboxes.push(hold(await places.take(id), id));
  expect(supervisors).toHaveLength(2);
  const [one, other] = supervisors as [PlayedSupervisor, PlayedSupervisor];
  for (const id of ids.slice(0, -1)) one.say(id, { type: 'prepared', workspace: `/${id}` });
  one.die();
  for (const sandbox of sandboxes.slice(0, -1))
    expect((await sandbox.ended).verdict).toMatchObject({ reason: 'supervisor_lost' });
  expect(sandboxes.map((sandbox) => sandbox.isAlive())).toEqual(ids.map((_, n) => n === mostAtOnce));
  const last = sandboxes.at(-1)?.prepare({}, 60);
  other.say(ids.at(-1) ?? '', { type: 'prepared', workspace: '/last' });
  expect(await last).toBe('/last');
});

test('rejects the start of a sandbox if its agent ended while it waited', async () => {
  const { places, supervisors, hold } = playPlaces();
  const sandbox = hold(await places.take('waiting'), 'waiting');
  const prepared = sandbox.prepare({}, 60);
  supervisors[0]?.say('waiting', { type: 'prepared', workspace: '/w' });
  await prepared;
  const spawned = sandbox.spawn(launch);
  supervisors[0]?.say('waiting', { type: 'disposed' });
  await expect(spawned).rejects.toThrow('ended before its agent got its run');
  await sandbox.dispose();
  await sandbox.gone;
});

test('starts a second supervisor only when all places of the first supervisor are taken', async () => {
  const { places, supervisors } = playPlaces();
  const taken = await Promise.all(Array.from({ length: mostAtOnce }, (_, n) => places.take(`at-once-${n}`)));
  expect(supervisors).toHaveLength(1);
  taken[0]?.leave();
  expect((await places.take('again')).id).toBe('1');
  expect((await places.take('next')).id).toBe('2');
});

test('ends a full supervisor when the last of its sandboxes has ended', async () => {
  const { places, supervisors } = playPlaces();
  const stays = await places.take('stays');
  for (let n = 1; n < mostInAll; n++) (await places.take(`sandbox-${n}`)).leave();
  expect((await places.take('next')).id).toBe('2');
  expect(supervisors[0]?.isClosed()).toBe(false);
  stays.leave();
  expect(supervisors.map(({ isClosed }) => isClosed())).toEqual([true, false]);
});

test('keeps a supervisor without a sandbox for ten seconds', async () => {
  const { places, supervisors } = playPlaces();
  (await places.take('first')).leave();
  vi.advanceTimersByTime(9000);
  const second = await places.take('second');
  vi.advanceTimersByTime(60_000);
  expect(supervisors[0]?.isClosed(), 'it has a sandbox again').toBe(false);
  second.leave();
  vi.advanceTimersByTime(10_000);
  expect(supervisors[0]?.isClosed()).toBe(true);
});

test('does not end the supervisor of a newer sandbox after the place of an older sandbox was released twice', async () => {
  const { places, supervisors } = playPlaces();
  const first = await places.take('first');
  first.leave();
  first.leave();
  await places.take('second');
  vi.advanceTimersByTime(60_000);
  expect(supervisors[0]?.isClosed()).toBe(false);
});

test('replaces a supervisor that died', async () => {
  const { places, supervisors } = playPlaces();
  const lost = await places.take('first');
  supervisors[0]?.die();
  lost.leave();
  expect((await places.take('second')).id).toBe('2');
});

test('at its end, waits only for supervisors without a sandbox, and leaves the others running', async () => {
  const { places, supervisors } = playPlaces();
  await places.take('stays');
  await places.close();
  expect(supervisors[0]?.isClosed()).toBe(true);
});

test('returns the failure of a start, and tries again with the next sandbox', async () => {
  let tries = 0;
  const places = keepPlaces(() => {
    tries += 1;
    return Promise.reject(new Error('no memory'));
  });
  for (const id of ['first', 'second']) await expect(places.take(id)).rejects.toThrow('no memory');
  expect(tries).toBe(2);
});
