/** Tests that messages about executions that a worker does not hold change nothing, in any order and number. */
import { WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import fc from 'fast-check';
import { beforeEach, expect, test, vi } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { openTestExecutions, type TestExecutions } from '../../../test/executions.ts';
import { insertWorkerKey } from '../../../test/key.ts';
import { type Hub, openHub } from './hub.ts';

let t: TestExecutions;
let hub: Hub;
let keyId: string;
beforeEach(async () => {
  t = closeAtEnd(await openTestExecutions());
  keyId = await insertWorkerKey(t.deps.db, t.teamId);
  hub = closeAtEnd(openHub(t.deps, { serviceInstanceId: '01a1fdad-b3cf-7c20-a9f8-51440e63fad8' }));
});

const sandbox = { backend: 'bubblewrap', features: [], missing: [] };
const text = fc.string({ maxLength: 10 });
const count = fc.nat(1000);
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });

/** Returns arbitrary messages about one of the tasks and executions. */
function messagesAbout(tasks: readonly string[], executions: readonly string[], tokens: readonly string[]) {
  const task = { task_id: fc.constantFrom(...tasks), execution_id: fc.constantFrom(...executions) };
  const about = (type: string, data: Record<string, fc.Arbitrary<unknown>>) =>
    fc.record({
      type: fc.constant(type),
      seq: optional(fc.integer({ min: 1, max: 5 })),
      data: fc.record({ ...task, ...data }),
    });
  return fc.oneof(
    about('task_claimed', { worker_id: text }),
    about('task_rejected', { reason: text }),
    about('sandbox_ready', { backend: text, spawn_ms: count }),
    about('image_step', {
      step: fc.constantFrom('started', 'progress', 'finished'),
      image: text,
      bytes: optional(count),
    }),
    about('service_output', { name: text, output_tail: text, error: optional(text) }),
    about('task_completed', { message: text, task_state: optional(fc.constant('CANCELLED')) }),
    about('task_failed', {
      message: text,
      exit_code: optional(fc.integer()),
      failure_reason: optional(fc.constant('graceful_shutdown')),
    }),
    about('execution_closed', {}),
    fc.record({
      type: fc.constant('worker_hello'),
      data: fc.record({
        worker_id: text,
        instance_id: text,
        token: optional(fc.constantFrom(...tokens)),
        replaced_tokens: optional(fc.array(fc.constantFrom(...tokens), { maxLength: 2 })),
        slots: fc.constant(0),
        executions: fc.array(fc.record({ ...task, idle: optional(fc.boolean()) }), { maxLength: 2 }),
        sandbox: fc.constant(sandbox),
        draining: fc.boolean(),
      }),
    }),
  );
}

/** Connects a worker. Returns the messages that it gets, and a function that sends messages in the form of the socket. */
async function connect(workerId: string) {
  const sent: { readonly type: string; readonly data: Record<string, unknown> }[] = [];
  const connection = await hub.connect({
    workerId,
    teamId: null,
    keyId,
    send: (message) => sent.push(message),
    end: () => {},
  });
  return {
    sent,
    send: (message: unknown) => connection.message(WorkerMessage.parse(JSON.parse(JSON.stringify(message)))),
  };
}

test('no messages of a worker change the execution of another worker', async () => {
  const holder = await connect('runyard-holder');
  await holder.send({
    type: 'worker_hello',
    data: { worker_id: 'runyard-holder', instance_id: 'i', slots: 1, executions: [], sandbox, draining: false },
  });
  const runId = await t.newRun();
  const assignment = await vi.waitFor(() => {
    const found = holder.sent.find(({ type }) => type === 'task_assignment');
    if (!found) throw new Error('no assignment yet');
    return found.data;
  });
  const executionId = String(assignment.execution_id);
  await holder.send({ type: 'task_claimed', data: { task_id: runId, execution_id: executionId, worker_id: 'w' } });
  const read = async () =>
    await t.deps.db.query(
      `SELECT r.state, r.event_seq, e.phase, e.connection_id, e.worker_instance, e.exit, e.sandbox, (SELECT count(*) FROM executions) AS executions
       FROM runs r JOIN executions e ON e.run_id = r.id WHERE r.id = $1`,
      [runId],
    );
  const before = await read();
  expect(before).toMatchObject([{ state: 'CLAIMED', phase: 'claimed' }]);
  const stranger = await connect('runyard-stranger');
  const unknown = '01a1fdad-b3cf-7c20-a9f8-51440e63fad9';
  const messages = messagesAbout([runId, unknown], [executionId, unknown], ['a token', '']);
  await fc.assert(
    fc.asyncProperty(fc.array(messages, { minLength: 1, maxLength: 6 }), async (sent) => {
      for (const message of sent) await stranger.send(message);
      expect(await read()).toEqual(before);
    }),
    { numRuns: 15 },
  );
  // The worker that holds the execution sends a message of the same kind, and it takes effect. So the service refused the other messages
  // only because of their sender.
  await holder.send({ type: 'task_completed', data: { task_id: runId, execution_id: executionId, message: 'done' } });
  expect(await read()).not.toEqual(before);
});
