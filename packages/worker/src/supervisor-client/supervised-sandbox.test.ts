import path from 'node:path';
import { thisProcess } from '@runyard/system/process-identity';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import type { Addressed } from './channels.ts';
import type { LineHandlers } from './lines.ts';
import type { Order, Report } from './messages.ts';
import { keepPlaces, mostAtOnce, mostInAll, type Place, type SupervisorProcess } from './places.ts';
import { superviseSandbox } from './supervised-sandbox.ts';

const exit = { exitCode: 0, outOfMemory: false, outputTail: '' };
const launch = { args: [], env: {}, runToken: 'token' };
const stateRoot = newFolder();
const log = { info: () => {}, warn: () => {} };

interface PlayedSupervisor {
  readonly sent: Addressed<Order>[];
  say(sandbox: string, report: Report): void;
  /** Ends the process of this fake supervisor. */
  die(): void;
  readonly isClosed: () => boolean;
}

/** Returns places in fake supervisors, with which a test exchanges messages. */
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
      // This identity belongs to no existing process, so no code waits for its end.
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
beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('each sandbox of a supervisor gets only its own reports', async () => {
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

test('if a supervisor dies, all its sandboxes are lost, but no sandbox of another supervisor', async () => {
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

test('the start of a run is rejected if the waiting agent of the sandbox has ended', async () => {
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

test('a second supervisor is started only when all places of the first one are taken', async () => {
  const { places, supervisors } = playPlaces();
  const taken = await Promise.all(Array.from({ length: mostAtOnce }, (_, n) => places.take(`at-once-${n}`)));
  expect(supervisors).toHaveLength(1);
  taken[0]?.leave();
  expect((await places.take('again')).id).toBe('1');
  expect((await places.take('next')).id).toBe('2');
});

test('a supervisor that has had the maximum number of sandboxes ends together with the last of its sandboxes', async () => {
  const { places, supervisors } = playPlaces();
  const stays = await places.take('stays');
  for (let n = 1; n < mostInAll; n++) (await places.take(`sandbox-${n}`)).leave();
  expect((await places.take('next')).id).toBe('2');
  expect(supervisors[0]?.isClosed()).toBe(false);
  stays.leave();
  expect(supervisors.map(({ isClosed }) => isClosed())).toEqual([true, false]);
});

test('a supervisor without a sandbox is kept for ten seconds', async () => {
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

test('if a place is released twice, the supervisor still does not end while it has a newer sandbox', async () => {
  const { places, supervisors } = playPlaces();
  const first = await places.take('first');
  first.leave();
  first.leave();
  await places.take('second');
  vi.advanceTimersByTime(60_000);
  expect(supervisors[0]?.isClosed()).toBe(false);
});

test('a supervisor that has died is replaced for the next sandbox', async () => {
  const { places, supervisors } = playPlaces();
  const lost = await places.take('first');
  supervisors[0]?.die();
  lost.leave();
  expect((await places.take('second')).id).toBe('2');
});

test('close() waits only for supervisors without a sandbox, and the others continue to run', async () => {
  const { places, supervisors } = playPlaces();
  await places.take('stays');
  await places.close();
  expect(supervisors[0]?.isClosed()).toBe(true);
});

test('take() rejects if the supervisor cannot be started, and the next call tries again', async () => {
  let tries = 0;
  const places = keepPlaces(() => {
    tries += 1;
    return Promise.reject(new Error('no memory'));
  });
  for (const id of ['first', 'second']) await expect(places.take(id)).rejects.toThrow('no memory');
  expect(tries).toBe(2);
});
