import { thisProcess } from '@runyard/contract/process-identity';
import { expect, test } from 'vitest';
import { keepIdleSupervisors } from './idle.ts';
import type { LineHandlers } from './lines.ts';
import type { Order, Report } from './messages.ts';
import { type SupervisorProcess, superviseSandbox } from './supervised.ts';

const exit = { exitCode: 0, outOfMemory: false, outputTail: '' };
const launch = { args: [], env: {}, runToken: 'token' };
const log = { info: () => {}, warn: () => {} };

/** A connection to a supervisor that the test plays. */
function playSupervisor() {
  const sent: Order[] = [];
  let handlers: LineHandlers<Report> | undefined;
  let isClosed = false;
  const supervisor: SupervisorProcess = {
    id: 'supervisor',
    process: thisProcess(),
    lines: {
      send: (order) => void sent.push(order),
      close: () => {
        isClosed = true;
      },
      handle: (next) => {
        handlers = next;
      },
    },
  };
  const hold = (id: string) =>
    superviseSandbox({
      ...supervisor,
      folder: `/nowhere/${id}`,
      traces: { id, stateRoot: '/nowhere', label: id, variable: `NAME=${id}` },
      log,
    });
  const say = (report: Report) => handlers?.message(report);
  return { supervisor, sent, hold, say, isClosed: () => isClosed };
}

test('sends no late order about a sandbox that has ended to the next sandbox of its supervisor', async () => {
  const { supervisor, sent, hold, say } = playSupervisor();
  const first = hold('first');
  const prepared = first.prepare({}, 60);
  say({ type: 'prepared', workspace: '/w' });
  await prepared;
  const spawned = first.spawn(launch);
  say({ type: 'started' });
  await spawned;
  expect(first.freesSupervisor()).toBe(false);
  say({ type: 'ended', exit });
  await first.dispose();
  expect(first.freesSupervisor()).toBe(true);

  const idle = keepIdleSupervisors();
  idle.add(supervisor);
  expect(idle.take()).toBe(supervisor);
  expect(idle.take()).toBeUndefined();
  const second = hold('second');
  void second.prepare({}, 60);
  const before = sent.length;
  first.kill('kill');
  await first.dispose();
  expect(sent).toHaveLength(before);
  second.kill('kill');
  expect(sent.at(-1)).toEqual({ type: 'kill', how: 'kill' });
});

test('rejects the start of a sandbox whose agent ended while it waited, and keeps no supervisor for it', async () => {
  const { hold, say } = playSupervisor();
  const sandbox = hold('waiting');
  const prepared = sandbox.prepare({}, 60);
  say({ type: 'prepared', workspace: '/w' });
  await prepared;
  const spawned = sandbox.spawn(launch);
  say({ type: 'disposed' });
  await expect(spawned).rejects.toThrow('ended before its agent got its run');
  await sandbox.dispose();
  await sandbox.gone;
  expect(sandbox.freesSupervisor()).toBe(false);
});

test('ends a supervisor that held 16 sandboxes', () => {
  const idle = keepIdleSupervisors();
  const { supervisor, isClosed } = playSupervisor();
  for (let held = 1; held < 16; held++) {
    idle.add(supervisor);
    expect(idle.take()).toBe(supervisor);
  }
  idle.add(supervisor);
  expect([idle.take(), isClosed()]).toEqual([undefined, true]);
});

test('keeps two supervisors without a sandbox at most, and ends them in the end', () => {
  const idle = keepIdleSupervisors();
  const supervisors = [playSupervisor(), playSupervisor(), playSupervisor()];
  for (const { supervisor } of supervisors) idle.add(supervisor);
  expect(supervisors.map(({ isClosed }) => isClosed())).toEqual([false, false, true]);
  idle.close();
  expect(supervisors.every(({ isClosed }) => isClosed())).toBe(true);
});
