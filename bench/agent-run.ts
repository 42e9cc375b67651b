/** A run whose agent is the benchmark itself, and the events of such an agent. */
import pino from 'pino';
import { makeVault } from '../packages/service/src/platform/secrets/vault.ts';
import type { Database } from '../packages/service/src/platform/store/database/database.ts';
import { defaultTiming } from '../packages/service/src/runs/executions/deps.ts';
import { openNotices } from '../packages/service/src/runs/executions/notices.ts';
import { claim } from '../packages/service/src/runs/executions/transitions/transitions.ts';
import { assignNext } from '../packages/service/test/assign-next.ts';
import type { System } from '../test/support/system.ts';

/** Number of events that the agent sends in one request. */
export const batchSize = 200;

/** The output of each command of an agent. */
export const lines = ['First line of the output', 'warning: something is deprecated', 'compiled 214 modules in 3.2 s'];

/**
 * Yields the events of an agent's turns. In each turn the agent writes a text in 12 pieces and runs a command; in the last turn the text
 * is `end`. Each command has `outputBytes` of output in addition to its short lines.
 */
export function* agentEvents(count: number, end: string, outputBytes = 0): Generator<Record<string, unknown>> {
  const outputs = lines.map(
    (line) => `${line}${'\nAnother line of a long output'.repeat(outputBytes / lines.length / 30)}`,
  );
  for (let sent = 0, turn = 0; sent < count; turn += 1) {
    const step = `s${Math.floor(turn / 50)}`;
    const events: Record<string, unknown>[] = [];
    if (turn % 50 === 0) events.push({ type: 'turn_started', step_id: step, prompt: `Part ${turn / 50} of the work` });
    for (let piece = 0; piece < 12; piece += 1)
      events.push({
        type: 'text',
        step_id: step,
        message_id: `m${turn}`,
        role: 'assistant',
        text: piece % 4 === 3 ? `\n\n- **item** ${piece} of \`turn ${turn}\`` : ' some words that the model says now',
      });
    const action = `a${turn}`;
    events.push({
      type: 'action',
      step_id: step,
      action_id: action,
      category: 'command',
      name: 'shell',
      input: { command: `npm test -- --shard ${turn}` },
    });
    for (const line of outputs) events.push({ type: 'action_output', action_id: action, text: `${line} ${turn}\n` });
    events.push({ type: 'action_result', action_id: action, state: 'completed', exit_code: 0, duration_ms: 900 });
    for (const event of events) {
      if (sent === count - 1) {
        yield { type: 'text', step_id: step, message_id: 'end', role: 'assistant', text: end };
        return;
      }
      sent += 1;
      yield event;
    }
  }
}

/** Starts a run; this program acts as its agent. Returns its id and a function that reports events. */
export async function startRun(system: System, db: Database, key: string, title: string) {
  const request = async (method: string, route: string, bearer: string, body: unknown) => {
    const response = await fetch(`${system.baseUrl()}/api/v1${route}`, {
      method,
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${method} ${route}: ${response.status} ${await response.text()}`);
    return (await response.json()) as { run_id: string };
  };
  const { run_id: runId } = await request('POST', '/agent/runs', key, { title, prompt: 'Work for a long time.' });
  await db.query('UPDATE executions SET pool = $2 WHERE run_id = $1', [runId, runId]);
  const executionDeps = {
    db,
    log: pino({ level: 'silent' }),
    notices: await openNotices(db),
    timing: { ...defaultTiming, claimTimeoutSeconds: 3600 },
    limits: { eventBytes: 2 ** 30, transcriptBytes: 2 ** 30, teamBytes: 2 ** 40 },
    secrets: [],
    vault: makeVault(Buffer.alloc(32)),
    random: () => 0.5,
  };
  // The connection must belong to a process in `service_instances`. Otherwise the service ends the executions of the connection.
  const [connection] = await db.query<{ id: string }>(
    `INSERT INTO worker_connections (id, service_instance_id, worker_id, instance_id, slots)
     SELECT gen_random_uuid(), id, 'bench-' || $1, 'one', 1 FROM service_instances RETURNING id`,
    [runId],
  );
  const slot = { connectionId: connection?.id ?? '', workerId: `bench-${runId}`, workerInstance: 'one', teamId: null };
  const assignment = await assignNext(executionDeps, { ...slot, pool: runId });
  if (typeof assignment === 'string') throw new Error(assignment);
  await claim(db, {
    runId,
    executionId: assignment.executionId,
    args: { assignment_id: assignment.assignmentId, lease_seconds: 3600 },
  });
  let sent = 0;
  const send = async (events: Iterable<Record<string, unknown>>) => {
    const occurred = new Date().toISOString();
    const batch = Array.from(events, (event, index) => ({ seq: sent + index + 1, occurred_at: occurred, ...event }));
    sent += batch.length;
    await request('POST', '/harness-support/events', assignment.runToken, { events: batch });
  };
  await send([{ type: 'agent_started', harness: 'oz', model_id: 'runbook' }]);
  return {
    runId,
    /** Reports the events as fast as the service accepts them. */
    report: async (events: Iterable<Record<string, unknown>>) => {
      const batch: Record<string, unknown>[] = [];
      for (const event of events) {
        batch.push(event);
        if (batch.length === batchSize) await send(batch.splice(0));
      }
      await send(batch);
    },
  };
}
