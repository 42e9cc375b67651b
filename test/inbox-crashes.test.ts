/** Tests that a service which is killed while a run changes its state loses no notification of the inbox, and makes none twice. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestService } from '../packages/service/test/service.ts';
import { type OneService, startService } from './support/service-process.ts';
import { eventually } from './support/system.ts';

const service = await openTestService();
const { db } = service.deps;
let killed: OneService | undefined;
let other: OneService | undefined;
beforeAll(async () => {
  [killed, other] = await Promise.all([start(), start()]);
});
afterAll(async () => {
  await Promise.all([killed?.stop(), other?.stop()]);
});
const start = () => startService({ databaseUrl: service.database.url, key: service.key });

/** Sends a report of an agent. Returns the status; 0: the process died before it answered. */
async function report(to: OneService | undefined, token: string, path: string, body: object): Promise<number> {
  const answer = await fetch(`${to?.origin}/api/v1/harness-support/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }).catch(() => undefined);
  await answer?.arrayBuffer().catch(() => undefined);
  return answer?.status ?? 0;
}

const occurred_at = '2026-01-02T03:04:05.000Z';
const began = [
  { seq: 1, occurred_at, type: 'agent_started', harness: 'oz', model_id: 'runbook' },
  { seq: 2, occurred_at, type: 'turn_started', step_id: 's1', prompt: 'Go.' },
];
const request = { request_id: 'q1', kind: 'question', title: 'Which?' };
const blocked = { seq: 3, occurred_at, type: 'blocked', step_id: 's1', request };
const changes = [
  ['FAILED', 'finish-task', { success: false, summary: 'It broke.' }],
  ['BLOCKED', 'events', { events: [blocked] }],
] as const;

/** Returns the state of the run, and the number of its notifications with those whom they ask. */
async function seen(runId: string) {
  const [row] = await db.query<{ state: string; notifications: number }>(
    `SELECT r.state, count(p.*)::integer AS notifications
     FROM runs r LEFT JOIN inbox_items i ON i.run_id = r.id LEFT JOIN inbox_recipients p ON p.item_uid = i.uid
     WHERE r.id = $1 GROUP BY r.state`,
    [runId],
  );
  return row;
}
const waitsForInbox = () =>
  db.query(`SELECT pid FROM pg_locks WHERE relation = 'inbox_items'::regclass AND NOT granted`);

test.each(changes)(
  'a run that becomes %s has one notification, although the service was killed before it wrote this notification',
  async (state, path, body) => {
    const { runId, runToken } = await service.claimRun(await service.newRun({ prompt: 'p' }));
    expect(await report(killed, runToken, 'events', { events: began })).toBeLessThan(300);
    const before = await seen(runId);
    const answer = await db.transaction(async (tx) => {
      await tx.query('LOCK TABLE inbox_items IN ACCESS EXCLUSIVE MODE');
      const sent = report(killed, runToken, path, body);
      await eventually('the report waits for the inbox', async () => (await waitsForInbox()).length > 0);
      await killed?.kill();
      return await sent;
    });
    expect(answer, 'the process died before it answered').toBe(0);
    // The database may still execute what the process has sent.
    await eventually('the statement has ended', async () => (await waitsForInbox()).length === 0);
    expect([before, { state, notifications: 1 }]).toContainEqual(await seen(runId));
    expect(await report(other, runToken, path, body)).toBeLessThan(300);
    expect(await seen(runId)).toEqual({ state, notifications: 1 });
    killed = await start();
    // The agent did not get the answer, and sends its report once more.
    expect(await report(killed, runToken, path, body)).toBeLessThan(500);
    expect(await seen(runId)).toEqual({ state, notifications: 1 });
  },
  240_000,
);
