import { describe, expect, test, vi } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { followStream, untilState } from '../../../../test/stream.ts';
import { cancelRun } from '../../../runs/executions/cancel/cancel.ts';

const service = await openTestService();

const follow = (path: string, lastId?: string) => followStream(service, path, lastId);

describe('the stream of a team', () => {
  test('sends new states and timeline events of all its runs, without conversations and other teams', async () => {
    const reader = await follow('/agent/runs/events');
    const first = await service.startExecution();
    const word = { type: 'text', step_id: 's', message_id: 'm', role: 'assistant', text: 'Word' };
    const events = [{ seq: 1, occurred_at: '2026-11-21T10:00:00Z', ...word }];
    await service.request('POST', '/harness-support/events', { key: first.runToken, body: { events } });
    const others = await service.newRun({}, service.otherKey);
    const second = await service.newRun();
    await cancelRun(service.deps.executionDeps, first.runId);
    await untilState(reader, 'CANCELLED');
    await vi.waitFor(
      () => expect(reader.received.some(({ event }) => 'run_id' in event && event.run_id === second)).toBe(true),
      10_000,
    );
    const runs = reader.received.map(({ event }) => ('run_id' in event ? event.run_id : ''));
    expect(runs).not.toContain(others);
    const ofFirst = reader.received.filter((_, index) => runs[index] === first.runId);
    expect(ofFirst.flatMap(({ event }) => (event.type === 'state' ? [event.state] : []))).toEqual([
      'QUEUED',
      'PENDING',
      'CLAIMED',
      'CANCELLED',
    ]);
    expect(ofFirst.some(({ event }) => event.type === 'conversation')).toBe(false);
    reader.close();
  });

  test('resumes after every id, and after its first id', async () => {
    const reader = await follow('/agent/runs/events');
    const beginning = await vi.waitFor(() => expect(reader.lastId()).not.toBe(''), 60_000).then(() => reader.lastId());
    const { runId } = await service.startExecution();
    await cancelRun(service.deps.executionDeps, runId);
    await untilState(reader, 'CANCELLED');
    reader.close();
    for (const [index, id] of [beginning, ...reader.received.map((each) => each.id)].entries()) {
      const rest = await follow('/agent/runs/events', id);
      await vi.waitFor(() => expect(rest.received).toEqual(reader.received.slice(index)), 60_000);
      rest.close();
    }
  });

  test('answers 400 for ids of another kind, and 401 without a key', async () => {
    const at = (id: string) => service.problem(400, 'GET', '/agent/runs/events', { headers: { 'last-event-id': id } });
    const reader = await follow('/agent/runs/events');
    await vi.waitFor(() => expect(reader.lastId()).not.toBe(''), 60_000);
    const [epoch] = reader.lastId().split('-');
    for (const id of ['7', '7.1', 'x', `${epoch}-999999999999`, `${epoch}-1-x-1`, `${epoch}-${'9'.repeat(40)}`])
      await at(id);
    reader.close();
    await service.problem(401, 'GET', '/agent/runs/events', { key: null });
  });

  test('answers 410 for ids of another epoch, and for ids that are older than a week', async () => {
    const reader = await follow('/agent/runs/events');
    await vi.waitFor(() => expect(reader.lastId()).not.toBe(''), 60_000);
    reader.close();
    const [epoch, xact] = reader.lastId().split('-');
    const gone = (id: string) =>
      service.problem(410, 'GET', '/agent/runs/events', { headers: { 'last-event-id': id } });
    const problem = await gone(`0123456789abcdef-${xact}`);
    expect(problem.error_code).toBe('resource_not_found');
    await service.deps.db.query(
      `INSERT INTO event_stream_marks VALUES (now() - interval '8 days', $1::xid8), (now() - interval '6 days', '99999999')`,
      [xact],
    );
    await gone(`${epoch}-${Number(xact) - 1}`);
    (await follow('/agent/runs/events', `${epoch}-${xact}`)).close();
    await service.deps.db.query('DELETE FROM event_stream_marks');
  });
});
