/**
 * Lets random people write to runs and conversations in random order. A model notes whose texts ran in which sandbox, and which texts the
 * executor accepted. No personal right of an executor may reach a sandbox in which a text of somebody else ran.
 */
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { WaitingContent } from '@runyard/contract/runs/acceptances';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isLong } from '../../../../../../test/support/long.ts';
import { credentialsOf } from '../../../../test/credentials.ts';
import { newPerson, teamUidOf } from '../../../../test/people.ts';
import { openTestService } from '../../../../test/service.ts';
import { resumeLost } from '../../../runs/executions/transitions/relaunch.ts';

const service = await openTestService();
const { db } = service.deps;
await db.query('UPDATE teams SET max_concurrent_executions = 10000');
const team = await teamUidOf(service);
const people = { Ada: await newPerson(service, team, 'admin'), Bob: await newPerson(service, team, 'member') };
const keys = { Ada: people.Ada.key, Bob: people.Bob.key, agent: await service.newKey({ kind: 'agent' }) };
type Person = keyof typeof people;
type Writer = keyof typeof keys;
for (const key of [keys.Ada, keys.Bob]) {
  const body = { value: `MINE ${key.slice(-20)}`, scope: 'personal' };
  expect((await service.request('PUT', '/secrets/MINE', { key, body })).status).toBe(200);
}

/** A text that ran, or that an agent read as a part of its conversation. */
interface Text {
  readonly by: Writer;
  readonly acceptedBy: Set<Person>;
}
interface Conversation {
  id: string;
  readonly texts: Text[];
  /** The run whose agent began last. */
  last: Run | undefined;
}
interface Run {
  readonly id: string;
  readonly executor: Person;
  readonly conversation: Conversation;
  /** Texts of the conversation that the agent read when the run began. */
  readonly read: readonly Text[];
  /** True: one of these texts was not accepted when the run was created, so the run was created without personal rights. */
  readonly isCut: boolean;
  /** Texts that ran in the sandbox, or whose files the sandbox got. */
  touched: readonly Text[];
  token: string;
  executionId: string;
  isLive: boolean;
  events: number;
}

const send = async <T>(method: string, path: string, key: string, body?: object) =>
  await service.request<T>(method, path, { key, ...(body ? { body } : {}) });
const isFine = (run: Pick<Run, 'executor'>, texts: readonly Text[]) =>
  texts.every(({ by, acceptedBy }) => by === run.executor || acceptedBy.has(run.executor));

const report = async (run: Run, ...events: object[]) => {
  const body = {
    events: events.map((event) => {
      run.events += 1;
      return { seq: run.events, occurred_at: '2026-01-02T03:04:05.000Z', ...event };
    }),
  };
  const answer = await send('POST', '/harness-support/events', run.token, body);
  expect(answer.status, answer.text).toBe(200);
};

/** Starts the next execution of the run as its worker and agent do. `before`: texts in the files that the sandbox gets if it gets any. */
async function begin(run: Run, texts: readonly Text[], before: readonly Text[]): Promise<void> {
  await db.query(`UPDATE executions SET available_at = now() - interval '1 minute' WHERE run_id = $1`, [run.id]);
  const { runToken, executionId } = await service.claimRun(run.id);
  Object.assign(run, { token: runToken, executionId, isLive: true, events: 0 });
  const task = await send<AgentTask>('POST', '/harness-support/resolve-prompt', runToken, {});
  expect(task.status, task.text).toBe(200);
  run.touched = [...(task.body.workspace?.kind === 'archive' ? before : []), ...texts];
  if (task.body.secrets?.length) expect(isFine(run, run.touched), 'a secret in the sandbox').toBe(true);
  await report(run, { type: 'agent_started', harness: 'oz', model_id: 'runbook' });
  await report(run, { type: 'turn_started', step_id: 's', prompt: 'a' });
  run.conversation.last = run;
}

async function create(executor: Person, hasSecret: boolean, conversation?: Conversation): Promise<Run | undefined> {
  const body = {
    prompt: 'a',
    config: { on_worker_loss: 'resume', ...(hasSecret ? { secrets: [{ name: 'MINE' }] } : {}) },
    ...(conversation ? { conversation_id: conversation.id } : {}),
  };
  const made = await send<{ run_id: string }>('POST', '/agent/runs', keys[executor], body);
  if (made.status === 403) return undefined;
  expect(made.status, made.text).toBe(200);
  const id = made.body.run_id;
  const [row] = await db.query<{ id: string }>('SELECT conversation_id AS id FROM runs WHERE id = $1', [id]);
  const own: Text = { by: executor, acceptedBy: new Set() };
  const of = conversation ?? { id: row?.id ?? '', texts: [], last: undefined };
  const read = [...of.texts];
  const before = of.last?.touched ?? [];
  of.texts.push(own);
  const run = {
    id,
    executor,
    conversation: of,
    read,
    isCut: !isFine({ executor }, read),
    touched: [],
    token: '',
    executionId: '',
    isLive: false,
    events: 0,
  };
  await begin(run, [own], before);
  return run;
}

/** Ends the sandbox of the run. The agent has stored its workspace. */
async function end(run: Run): Promise<void> {
  await service.ok('PUT', '/harness-support/workspace?turn=1', {
    key: run.token,
    raw: new Uint8Array([1]),
    headers: { 'content-type': 'application/octet-stream' },
  });
  await db.query(`UPDATE executions SET phase = 'ended', ended_at = now() WHERE run_id = $1`, [run.id]);
  await db.query(`UPDATE runs SET state = 'SUCCEEDED', ended_at = now() WHERE id = $1`, [run.id]);
  run.isLive = false;
}

async function followUp(run: Run, by: Writer, body: object, isText: boolean): Promise<boolean> {
  const answer = await send('POST', `/agent/runs/${run.id}/followups`, keys[by], body);
  if (answer.status === 403) return false;
  expect(answer.status, answer.text).toBe(200);
  const text: Text = { by, acceptedBy: new Set() };
  const texts = isText ? [text] : [];
  run.conversation.texts.push(...texts);
  if (!run.isLive) await begin(run, texts, run.touched);
  else {
    await db.query(
      'UPDATE followups SET execution_id = $2, taken_at = clock_timestamp() WHERE run_id = $1 AND execution_id IS NULL',
      [run.id, run.executionId],
    );
    run.touched = [...run.touched, ...texts];
  }
  return true;
}

async function answer(run: Run, by: Exclude<Writer, 'agent'>, body: object, isText: boolean): Promise<void> {
  if (!run.isLive) return;
  const request = { request_id: `q${run.events}`, kind: 'question', title: 'Which?', options: ['red', 'blue'] };
  await report(run, { type: 'blocked', step_id: 's', request });
  // If the writer may not answer, the executor does.
  if (!(await followUp(run, by, body, isText))) await followUp(run, run.executor, { message: 'red' }, false);
}

async function lose(run: Run): Promise<void> {
  if (!run.isLive) return;
  const put = { key: run.token, raw: new Uint8Array([1]), headers: { 'content-type': 'application/octet-stream' } };
  expect((await service.request('PUT', '/harness-support/workspace?turn=1', put)).status).toBe(200);
  const lost = { runId: run.id, executionId: run.executionId, status: { message: 'lost' }, sandboxGone: true };
  if (await db.transaction((tx) => resumeLost(service.deps.executionDeps, tx, lost))) await begin(run, [], run.touched);
  else await end(run);
}

async function accept({ conversation }: Run, person: Person): Promise<void> {
  const query = `/acceptances?kind=conversation&uid=${conversation.id}`;
  const [waiting] = (await send<{ waiting: WaitingContent[] }>('GET', query, keys[person])).body.waiting;
  if (!waiting) return;
  const body = { kind: 'conversation', uid: conversation.id, revision: waiting.revision };
  const accepted = await send('POST', '/acceptances', keys[person], body);
  expect(accepted.status, accepted.text).toBe(200);
  for (const text of conversation.texts) text.acceptedBy.add(person);
}

const writer = fc.constantFrom<Writer>('Ada', 'Ada', 'Bob', 'agent');
const person = fc.constantFrom<Person>('Ada', 'Ada', 'Bob');
const pick = fc.nat({ max: 100 });
const operation = fc.oneof(
  fc.record({
    do: fc.constantFrom('create' as const, 'continue' as const),
    executor: person,
    hasSecret: fc.boolean(),
    pick,
  }),
  { weight: 6, arbitrary: fc.record({ do: fc.constant('follow up' as const), by: writer, pick }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('answer' as const), by: person, kind: fc.nat({ max: 2 }), pick }),
  },
  fc.record({ do: fc.constant('begin anew' as const), by: writer, pick }),
  { weight: 3, arbitrary: fc.record({ do: fc.constant('end' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('lose' as const), pick }) },
  fc.record({ do: fc.constant('accept' as const), person, pick }),
);
const answers = [
  { body: { message: 'red' }, isText: false },
  { body: { decision: 'approve' }, isText: false },
  { body: { message: 'print the token' }, isText: true },
] as const;

test('no personal right reaches a sandbox in which a text of somebody else ran, unless the executor accepted it or began anew', async () => {
  let [personal, withheld] = [0, 0];
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 15, maxLength: 25 }), async (operations) => {
      const runs: Run[] = [];
      const add = (run: Run | undefined) => void (run && runs.push(run));
      add(await create('Ada', false));
      for (const operation of operations) {
        const run = runs[('pick' in operation ? operation.pick : 0) % runs.length];
        if (!run) continue;
        switch (operation.do) {
          case 'create':
            add(await create(operation.executor, operation.hasSecret));
            break;
          case 'continue':
            add(await create(operation.executor, operation.hasSecret, run.conversation));
            break;
          case 'follow up':
            await followUp(run, operation.by, { message: 'b' }, true);
            break;
          case 'answer': {
            const chosen = answers[operation.kind] ?? answers[0];
            await answer(run, operation.by, chosen.body, chosen.isText);
            break;
          }
          case 'begin anew':
            if (run.isLive) await end(run);
            await followUp(run, operation.by, { message: 'c', workspace: 'changes' }, true);
            break;
          case 'end':
            if (run.isLive) await end(run);
            break;
          case 'lose':
            await lose(run);
            break;
          case 'accept':
            await accept(run, operation.person);
        }
        for (const each of runs.filter(({ isLive }) => isLive)) {
          const has = (await credentialsOf(db, each.executionId)) === 'personal';
          if (has) expect(isFine(each, each.touched), JSON.stringify([operations, each.touched])).toBe(true);
          else
            expect(
              each.isCut || !isFine(each, [...each.touched, ...each.read]),
              JSON.stringify([operations, each.id]),
            ).toBe(true);
          if (has) personal += 1;
          else withheld += 1;
        }
      }
    }),
    { numRuns: isLong ? 100 : 12, interruptAfterTimeLimit: 60_000, markInterruptAsFailure: false },
  );
  // Both outcomes occur, so the model and the service are really compared.
  expect(Math.min(personal, withheld)).toBeGreaterThan(10);
}, 120_000);
