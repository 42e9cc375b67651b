import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { HarnessOutcome } from '../acp/outcome.ts';
import { connectToService } from '../service/connection.ts';
import type { TurnAnswers } from './forwarder/refusals.ts';
import { turnCheck } from './turn-check.ts';

let kills = 0;
const relay = createServer((request, response) =>
  response.end(request.url === '/sandbox/memory' ? JSON.stringify({ oom_kills: kills, memory_mb: 512 }) : '{}'),
);
const socket = path.join(mkdtempSync(path.join(tmpdir(), 'runyard-')), 'relay.sock');
relay.listen(socket);
await once(relay, 'listening');
afterAll(() => {
  relay.close();
  relay.closeAllConnections();
});

const done: HarnessOutcome = { kind: 'succeeded', summary: 'done' };
const failed: HarnessOutcome = { kind: 'failed', summary: '', message: 'It exited.', code: 'agent_process_failed' };

async function explain(outcome: HarnessOutcome, answers: Partial<TurnAnswers>, killed = 0) {
  const connection = connectToService({ serverRoot: 'http://localhost', relaySocket: socket, token: 't' });
  const notices: object[] = [];
  const forwarder = {
    ...{ url: '', key: '', beginTurn: () => {}, close: () => {} },
    answers: { succeeded: 0, refused: undefined, ...answers },
  };
  const check = turnCheck(
    connection,
    () => forwarder,
    (memory) => notices.push(memory),
  );
  await check.begin();
  kills += killed;
  const explained = await check.explain(outcome);
  connection.close();
  return { explained, notices };
}

const refused = { status: 403, message: 'not this model' };

test('a turn fails if the gateway refused every request to the model, even if the harness reported a success', async () => {
  const { explained } = await explain(done, { refused });
  expect(explained).toEqual({
    kind: 'failed',
    summary: 'done',
    message: 'The model gateway refused the last request of the harness with 403: not this model',
  });
});

test('a turn does not fail if the provider answered at least one request of the turn', async () => {
  expect((await explain(done, { succeeded: 1, refused })).explained).toBe(done);
});

test('the message of a failed turn contains the refusal, and the failure does not count as a failure of the harness', async () => {
  const { explained } = await explain(failed, { refused });
  expect(explained).toMatchObject({ message: expect.stringMatching(/^It exited\.\n.*not this model$/) });
  expect(explained).not.toHaveProperty('code');
  const outage = await explain(failed, { refused: { status: 529, message: 'overloaded' } });
  expect(outage.explained).toMatchObject({ code: 'resource_unavailable', retried: true });
});

test('the message of a failed turn names the memory limit if the kernel ended a process during the turn', async () => {
  const { explained, notices } = await explain(failed, {}, 1);
  expect(explained).toMatchObject({
    message: expect.stringMatching(/^The sandbox used up its 512 MB.*\nIt exited\.$/),
  });
  expect(notices).toEqual([{ memory_mb: 512 }]);
  expect((await explain(failed, {})).explained).toMatchObject({ message: 'It exited.' });
});
