/**
 * Measures how much time event subscriptions cost for the creates of a team that has no subscription. For this, measures the statement
 * that inserts runs with and without the part that enqueues deliveries to subscriptions.
 */
import { randomUUIDv7 } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Statement } from '../packages/service/src/platform/store/database/database.ts';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { startEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { deliveryChannel } from '../packages/service/src/runs/subscriptions/enqueue.ts';
import { openTestExecutions } from '../packages/service/test/executions.ts';
import { median, report } from './report.ts';
import { inTurns, spread, spreadColumns, timed } from './turns.ts';

const rounds = Number(process.env.BENCH_ROUNDS ?? 1000);
const together = 20;

const folder = await mkdtemp(path.join(tmpdir(), 'runyard-bench-enqueue-'));
const server = await startEmbeddedPostgres({ dataDir: folder, log: silentLog });
process.env.TEST_DATABASE_URL = server.url;
const test = await openTestExecutions();
try {
  const { db } = test.deps;
  const { statement, row } = await takeDownInsert();
  const part = new RegExp(
    `, \\w+ AS \\(\\s*INSERT INTO event_deliveries[^;]*?pg_notify\\('${deliveryChannel}', ''\\)\\s*\\)`,
  );
  const without = { name: 'insert_runs_alone', text: statement.text.replace(part, '') };
  if (without.text === statement.text) throw new Error('the part that enqueues was not found');

  const insert = (by: Statement, count: number) => {
    const rows = Array.from({ length: count }, () => {
      const [id, execution, conversation] = [randomUUIDv7(), randomUUIDv7(), randomUUIDv7()];
      return { ...row, id, execution_id: execution, conversation_id: conversation };
    });
    return timed(() => db.query(by, [JSON.stringify(rows)]));
  };
  const samples = await inTurns(
    {
      oneWithout: () => insert(without, 1),
      oneWith: () => insert(statement, 1),
      manyWithout: () => insert(without, together),
      manyWith: () => insert(statement, together),
    },
    rounds,
    50,
  );
  const share = (median(samples.oneWith) / median(samples.oneWithout)).toFixed(2);
  report(
    'Creates and event subscriptions',
    `Each row is the time, in milliseconds, of the statement that inserts runs, for a team without event subscriptions, on the embedded PostgreSQL; ${rounds} rounds in turns. With the part of the statement that enqueues deliveries to subscriptions, the insert of a single run takes **${share} times** as long (ratio of the medians).`,
    ['statement', ...spreadColumns],
    [
      ['one run, nothing enqueued', ...spread(samples.oneWithout, 2)],
      ['one run', ...spread(samples.oneWith, 2)],
      [`${together} runs, nothing enqueued`, ...spread(samples.manyWithout, 2)],
      [`${together} runs`, ...spread(samples.manyWith, 2)],
    ],
  );
} finally {
  await test.close();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}

/** The module does not export the statement. So create a run, and record the statement that this create sends, with its parameters. */
async function takeDownInsert(): Promise<{ statement: Statement; row: object }> {
  const { db } = test.deps;
  const { query } = db;
  const seen: { statement: Statement; row: object }[] = [];
  db.query = (statement, values) => {
    if (typeof statement === 'object' && statement.text.includes('INSERT INTO runs'))
      seen.push({ statement, row: JSON.parse(String(values?.[0]))[0] });
    return query(statement, values);
  };
  await test.newRun();
  db.query = query;
  const [first] = seen;
  if (first === undefined) throw new Error('no create was seen');
  return first;
}
