import { randomUUIDv7 } from 'node:crypto';
import { expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { openTestExecutions } from '../../../test/executions.ts';
import { readConversation } from '../../../test/read.ts';
import { mergeOldEvents } from '../../runs/conversations/retention.ts';
import { findRunPlace, readRunPages } from './run-events.ts';

const t = closeAtEnd(await openTestExecutions());

const at = '2026-11-21T10:00:00Z';
const text = (word: string, message = 'm1') => ({
  type: 'text',
  occurred_at: at,
  step_id: 's',
  message_id: message,
  role: 'assistant',
  text: word,
});
const output = (word: string) => ({ type: 'action_output', occurred_at: at, action_id: 'a', text: word });

/** Creates a run that ended the given number of hours ago. The run's events have the numbers 2, 3, …. Null creates an event of the timeline. */
async function endedRun(hoursAgo: number, events: readonly (object | null)[]): Promise<string> {
  const id = await t.newRun({ conversationId: randomUUIDv7() });
  for (const [index, event] of events.entries()) {
    await t.deps.db.query(
      event
        ? `INSERT INTO conversation_events (run_id, seq, execution_id, event) SELECT id, $2, current_execution_id, $3::jsonb FROM runs WHERE id = $1`
        : `INSERT INTO run_events (run_id, seq, event_type) SELECT $1, $2, coalesce($3, 'vm_shutdown')`,
      [id, index + 2, event ? JSON.stringify(event) : null],
    );
  }
  await t.deps.db.query(
    `UPDATE runs SET state = 'SUCCEEDED', event_seq = $2, ended_at = now() - make_interval(hours => $3) WHERE id = $1`,
    [id, events.length + 1, hoursAgo],
  );
  return id;
}

const rowsOf = async (id: string) =>
  (
    await t.deps.db.query<{ seq: number; from_seq: number | null; text: string | null }>(
      `SELECT seq, from_seq, event->>'text' AS text FROM conversation_events WHERE run_id = $1 ORDER BY seq`,
      [id],
    )
  ).map(({ seq, from_seq, text: words }) => [from_seq, seq, words]);

const conversationOf = (id: string) => readConversation(t.deps.db, 'c', [{ id, state: 'SUCCEEDED' }]);

const mergeAll = async () => {
  while ((await mergeOldEvents(t.deps.db)).more);
};

const story = [
  { type: 'turn_started', occurred_at: at, step_id: 's', prompt: 'Do it' },
  text('I '),
  text('am '),
  text('here. '),
  text('Other', 'm2'),
  text('Again ', 'm1'),
  null,
  text('and on', 'm1'),
  { type: 'action', occurred_at: at, step_id: 's', action_id: 'a', category: 'command', name: 'sh', input: {} },
  output('one\n'),
  output('two\n'),
  { type: 'action_result', occurred_at: at, action_id: 'a', state: 'completed' },
];

test('the merge of old events joins adjacent pieces of a message or output, and leaves the conversation unchanged', async () => {
  const id = await endedRun(25, story);
  const before = await conversationOf(id);
  await mergeAll();
  expect(await rowsOf(id)).toEqual([
    [null, 2, null],
    [3, 5, 'I am here. '],
    [null, 6, 'Other'],
    [null, 7, 'Again '],
    [null, 9, 'and on'],
    [null, 10, null],
    [11, 12, 'one\ntwo\n'],
    [null, 13, null],
  ]);
  expect(await conversationOf(id)).toEqual(before);
});

test('a position inside merged events is reported, and a stream can resume exactly before and after these events', async () => {
  const id = await endedRun(25, story);
  await mergeAll();
  const place = (seq: number) => findRunPlace(t.deps.db, { teamId: t.teamId, runId: id }, seq * 2);
  const inside: number[] = [];
  for (let seq = 0; seq <= 13; seq += 1) if ((await place(seq))?.isInsideMerged) inside.push(seq);
  expect(inside).toEqual([3, 4, 11]);
  const [before, within, behind] = await readRunPages(
    t.deps.db,
    [2, 4, 5].map((after) => ({ runId: id, after })),
    10,
  );
  if (before === 'gone' || within === 'gone' || behind === 'gone') throw new Error('gone');
  expect(String(before?.frames[0]?.bytes)).toContain('I am here. ');
  expect([before?.keptAfter, behind?.keptAfter]).toEqual([0, 0]);
  // A stream at a position inside merged events is closed, because events after the position were deleted.
  expect(within?.keptAfter).toBe(10);
});

test('the merge of old events joins text up to 32 KB, and adds the text of a continued run', async () => {
  const id = await endedRun(
    25,
    Array.from({ length: 100 }, () => text('x'.repeat(1000))),
  );
  await mergeAll();
  const lengths = (await rowsOf(id)).map(([, , words]) => String(words).length);
  expect(lengths).toHaveLength(4);
  expect(Math.max(...lengths)).toBeLessThan(34_000);
  for (const n of [102, 103]) {
    await t.deps.db.query(
      `INSERT INTO conversation_events (run_id, seq, execution_id, event) SELECT id, $2, current_execution_id, $3::jsonb FROM runs WHERE id = $1`,
      [id, n, JSON.stringify(text('more'))],
    );
  }
  await t.deps.db.query(`UPDATE runs SET event_seq = 103, ended_at = now() - interval '24.5 hours' WHERE id = $1`, [
    id,
  ]);
  await mergeAll();
  expect((await rowsOf(id)).at(-1)).toEqual([expect.any(Number), 103, expect.stringMatching(/xmoremore$/)]);
});

test('the events of runs that ended less than a day ago stay unchanged, and are merged later', async () => {
  const id = await endedRun(23, [text('a'), text('b')]);
  await mergeAll();
  expect(await rowsOf(id)).toHaveLength(2);
  await t.deps.db.query(`UPDATE runs SET ended_at = now() - interval '24.2 hours' WHERE id = $1`, [id]);
  await mergeAll();
  expect(await rowsOf(id)).toEqual([[2, 3, 'ab']]);
});
