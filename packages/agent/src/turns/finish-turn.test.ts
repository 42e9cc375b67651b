import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FinishTask, FinishTaskResponse } from '@runyard/contract/agent/finish-task';
import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startReporter } from '../reporting/reporter.ts';
import { ServiceRefusal } from '../service/errors.ts';
import { deferredSaver } from '../workspace-archive/deferred-saver.ts';
import { finishTurn } from './finish-turn.ts';

const report = { turn: 1, success: true, summary: 'done' };
const line = { type: 'transcript' as const, line: 'x' };
const seqs = (events: readonly { seq: number }[] = []) => events.map(({ seq }) => seq);

let workspace: string;
let home: string;
beforeEach(() => {
  [workspace, home] = [mkdtempSync(join(tmpdir(), 'runyard-w-')), mkdtempSync(join(tmpdir(), 'runyard-h-'))];
});
afterEach(() => {
  for (const folder of [workspace, home]) rmSync(folder, { recursive: true });
});

/** Opens a reporter and a saver with a fake service. `answer` returns the service's answer to the report of a turn. */
async function open(
  answer: (body: FinishTask) => Partial<FinishTaskResponse> | Error,
  { restored = false, maxBytes = 1000 } = {},
) {
  const calls: { path: string; seqs?: number[]; workspace?: string | undefined }[] = [];
  const reporter = startReporter({
    client: {
      async sendEvents(body) {
        const { events } = JSON.parse(body) as { events: AgentEvent[] };
        calls.push({ path: 'events', seqs: seqs(events) });
        return { acknowledged: events.at(-1)?.seq ?? 0 };
      },
    },
    signal: new AbortController().signal,
    onSuperseded: () => {},
  });
  const saver = deferredSaver({
    client: {
      upload: async (_, __, size) => void calls.push({ path: `workspace of ${size} bytes` }),
      uploadSnapshot: async () => ({ files: [] }),
    },
    workspace,
    ownFolders: true,
    env: { HOME: home },
    handedOff: () => [],
    reportChanges: async () => {},
    session: () => undefined,
    onLeftOut: () => {},
    onNotSaved: () => {},
    signal: new AbortController().signal,
  });
  await saver.begin({ max_workspace_bytes: maxBytes }, { restored, isSaved: restored });
  const client = {
    async finishTask(body: FinishTask) {
      calls.push({ path: 'finish-task', seqs: seqs(body.events), workspace: body.workspace });
      const answered = answer(body);
      if (answered instanceof Error) throw answered;
      return { next: 'leave' as const, ...answered };
    },
  };
  reporter.emit(line);
  const finish = async () => {
    const next = await finishTurn(report, { client: client as never, reporter, saver });
    await saver.save(1);
    await reporter.flush().catch(() => {});
    return next;
  };
  return { calls, finish, save: saver.save };
}

test('the report of a turn contains the last events and the empty workspace, and the agent sends no further request', async () => {
  const { calls, finish } = await open(() => ({ acknowledged: 1 }));
  expect(await finish()).toBe('leave');
  expect(calls).toEqual([{ path: 'finish-task', seqs: [1], workspace: 'empty' }]);
});

test('the agent saves a workspace that is not empty or that changed after the end of the turn', async () => {
  writeFileSync(join(workspace, 'file'), '');
  const { calls, finish } = await open(() => ({ acknowledged: 1 }));
  await finish();
  expect(calls.slice(0, 2)).toEqual([
    { path: 'finish-task', seqs: [1], workspace: undefined },
    { path: 'workspace of undefined bytes' },
  ]);
  rmSync(join(workspace, 'file'));
  const later = await open(() => {
    writeFileSync(join(home, 'late'), '');
    return { acknowledged: 1 };
  });
  await later.finish();
  expect(later.calls[1]).toEqual({ path: 'workspace of undefined bytes' });
});

test('the agent sends unchanged files once, and reports empty folders after each turn', async () => {
  const { calls, save } = await open(() => ({}), { restored: true });
  for (const turn of [1, 2]) await save(turn);
  writeFileSync(join(workspace, 'file'), '');
  for (const turn of [3, 4]) await save(turn);
  const empty = { path: 'workspace of 0 bytes' };
  // On a slow machine, the reporter sends its event meanwhile.
  const saved = calls.filter(({ path }) => path !== 'events');
  expect(saved).toEqual([empty, empty, { path: 'workspace of undefined bytes' }]);
});

test.each([{ restored: true }, { maxBytes: 0 }])(
  'the report of a turn does not contain the empty workspace if %o',
  async (how) => {
    const { calls, finish } = await open(() => ({ acknowledged: 1 }), how);
    await finish();
    expect(calls[0]).toEqual({ path: 'finish-task', seqs: [1], workspace: undefined });
  },
);

test('the agent sends the events separately if the service refuses events in the report of a turn', async () => {
  const refusal = new ServiceRefusal(400, '/finish-task', '{}');
  const { calls, finish } = await open(({ events }) => (events === undefined ? {} : refusal));
  await finish();
  expect(calls).toEqual([
    { path: 'finish-task', seqs: [1], workspace: 'empty' },
    { path: 'events', seqs: [1] },
    { path: 'finish-task', seqs: [], workspace: undefined },
    { path: 'workspace of 0 bytes' },
  ]);
});

test('the agent sends the events again if the service ignores the events in the report of a turn', async () => {
  const { calls, finish } = await open(() => ({}));
  await finish();
  expect(calls.map(({ path }) => path).sort()).toEqual(['events', 'finish-task', 'workspace of 0 bytes']);
});
