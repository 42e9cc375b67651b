/**
 * Tests how many statements and commits a run costs, and how many bytes it writes to the log of PostgreSQL: a run that a person creates, one that
 * a delivery starts, and one that a schedule starts.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CountingServer, type Counts, startCountingServer } from './support/count-statements.ts';
import { isLong } from './support/long.ts';
import { eventually, type System, sandboxProblem, startSystem } from './support/system.ts';

let server: CountingServer;
let system: System;

beforeAll(async () => {
  server = await startCountingServer();
  system = await startSystem({ databaseUrl: server.url });
}, 180_000);
afterAll(async () => {
  await system?.stop();
  await server?.stop();
});

const runs = 10;
const prompt = '```sh\ntrue\n```';

/** Starts runs one after the other, and waits until the sandbox of each has ended. */
async function doRuns(start: () => Promise<unknown>): Promise<void> {
  for (let n = 0; n < runs; n += 1) {
    const [before] = await server.query<{ ended: number }>(ended);
    await start();
    const isOver = async () => (await server.query<{ ended: number }>(ended))[0]?.ended === (before?.ended ?? 0) + 1;
    await eventually('the end of a run', isOver, undefined, 200);
  }
}

const ended = "SELECT count(*)::int AS ended FROM executions WHERE phase = 'ended'";

/** Returns the counts of one run: commits, statements, kilobytes of log. Polls do not count, because they are one statement of a process. */
async function countRuns(start: () => Promise<unknown>) {
  await doRuns(start);
  const { commits, logBytes, statements }: Counts = await server.count(() => doRuns(start));
  const isPoll = (text: string) => /^SELECT \* FROM \( SELECT w\.id, w\.readers/.test(text);
  const counted = [...statements].filter(([text]) => !isPoll(text));
  const polls = [...statements].filter(([text]) => isPoll(text)).reduce((sum, [, n]) => sum + n, 0);
  const found = {
    commits: (commits - polls) / runs,
    statements: counted.reduce((sum, [, n]) => sum + n, 0) / runs,
    logKilobytes: logBytes / runs / 1024,
  };
  console.log(found);
  return found;
}

test.skipIf(sandboxProblem !== null)(
  'a run with one command costs few commits and statements, and little log',
  async () => {
    const { commits, statements, logKilobytes } = await countRuns(() => system.createRun(prompt));
    // A quiet machine needs 17 commits, 31 statements and 23 KB. On a busy one, the agent sends its events in more batches, each of which
    // costs a commit and some statements.
    expect(commits).toBeLessThanOrEqual(28);
    expect(statements).toBeLessThanOrEqual(46);
    expect(logKilobytes).toBeLessThanOrEqual(32);
  },
  180_000,
);

test.skipIf(sandboxProblem !== null || !isLong)(
  'a delivery that starts a run, whose payload is a file of the run, costs at most 28 commits and 48 statements',
  { tags: 'long', timeout: 180_000 },
  async () => {
    const { uid: factory } = await system.call<{ uid: string }>('POST', '/factory', { name: 'F' }, 201);
    const webhook = await system.call<{ uid: string; url: string; secret: string }>(
      'POST',
      `/factory/${factory}/webhooks`,
      { name: 'W', auth_mode: 'token' },
      201,
    );
    const triggers = [{ provider: 'webhook', event: 'received', filter: { webhook_ids: [webhook.uid] } }];
    const automation = { name: 'A', prompt, triggers, config: { idle_timeout_minutes: 0 } };
    await system.call('POST', `/factory/${factory}/automations`, automation, 201);
    let sent = 0;
    const deliver = async () => {
      sent += 1;
      const answer = await fetch(webhook.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${webhook.secret}` },
        body: JSON.stringify({ sent }),
      });
      expect(answer.ok, await answer.text()).toBe(true);
    };
    const { commits, statements } = await countRuns(deliver);
    expect(commits).toBeLessThanOrEqual(28);
    expect(statements).toBeLessThanOrEqual(48);
  },
);

test.skipIf(sandboxProblem !== null || !isLong)(
  'a fire of a schedule costs at most 22 commits and 44 statements',
  { tags: 'long', timeout: 180_000 },
  async () => {
    const body = { name: 'S', cron_schedule: '0 0 1 1 *', prompt, agent_config: { idle_timeout_minutes: 0 } };
    const { id } = await system.call<{ id: string }>('POST', '/agent/schedules', body, 201);
    const fire = () =>
      server.query("UPDATE schedules SET next_run_at = date_trunc('milliseconds', now()) WHERE id = $1", [id]);
    const { commits, statements } = await countRuns(fire);
    expect(commits).toBeLessThanOrEqual(22);
    expect(statements).toBeLessThanOrEqual(44);
  },
);
