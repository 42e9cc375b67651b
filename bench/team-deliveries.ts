/** Measures the routes that list the webhooks, automations and deliveries of all factories of a team. The team has a million deliveries. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ListTeamDeliveriesQuery, ListTeamThingsQuery } from '@runyard/contract/automations/team-lists';
import { readTeamPlace } from '../packages/service/src/edges/live/team-events.ts';
import { type Database, openDatabase } from '../packages/service/src/platform/store/database/database.ts';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { startEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { migrateDatabase } from '../packages/service/src/platform/store/migrations/migrate.ts';
import { listTeamAutomations } from '../packages/service/src/triggers/automations/team-list.ts';
import { listTeamDeliveries } from '../packages/service/src/triggers/webhooks/log/team-log.ts';
import { listTeamWebhooks } from '../packages/service/src/triggers/webhooks/team-list.ts';
import { type SeededDeliveries, seedDeliveries } from './delivery-seed.ts';
import { percentile, report } from './report.ts';

const count = Number(process.env.BENCH_DELIVERIES ?? '1000000');
const repetitions = Number(process.env.BENCH_REPETITIONS ?? '100');
/** Goal: largest allowed p99 in milliseconds. */
const goal = 50;

const ago = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();

function casesOf(db: Database, { teamId, quietTeamId }: SeededDeliveries): [string, () => Promise<unknown>][] {
  const signer = { sign: () => 'signature', verify: () => true };
  const list = (query: object, team = teamId) =>
    listTeamDeliveries(db, signer, team, ListTeamDeliveriesQuery.parse({ limit: 50, ...query }));
  const things = ListTeamThingsQuery.parse({});
  return [
    ['SELECT 1, for comparison', () => db.query('SELECT 1')],
    ['50 webhooks, with numbers', () => listTeamWebhooks(db, signer, teamId, things)],
    ['50 automations, with numbers', () => listTeamAutomations(db, signer, teamId, things)],
    ['50 deliveries', () => list({})],
    ['50 deliveries of a team with 3', () => list({}, quietTeamId)],
    ['50 deliveries of a webhook', () => list({ webhook_uid: 'webhook-3' })],
    ['50 deliveries of a factory', () => list({ factory_uid: 'factory-3' })],
    ['50 deliveries of a frequent event', () => list({ event: 'event-0' })],
    ['50 deliveries of a rare event', () => list({ event: 'event-49' })],
    ['50 refused deliveries', () => list({ label: 'REJECTED_AUTH' })],
    ['50 deliveries that started runs', () => list({ started: true })],
    ['50 deliveries of a day', () => list({ received_after: ago(11), received_before: ago(10) })],
    ['a page that finds none among those that it looks at', () => list({ webhook_uid: 'webhook-1', event: 'none' })],
    ['position of a new stream', () => readTeamPlace(db, [])],
  ];
}

const folder = await mkdtemp(path.join(tmpdir(), 'runyard-bench-deliveries-'));
const server = await startEmbeddedPostgres({ dataDir: folder, log: silentLog });
const db = await openDatabase({ address: { connectionString: server.url }, maxConnections: 4, log: silentLog });
const rows: (string | number)[][] = [];
try {
  await migrateDatabase(db);
  for (const [title, read] of casesOf(db, await seedDeliveries(db, count))) {
    for (let n = 0; n < 8; n += 1) await read();
    const sample: number[] = [];
    for (let n = 0; n < repetitions; n += 1) {
      const started = performance.now();
      await read();
      sample.push(performance.now() - started);
    }
    const p99 = percentile(sample, 0.99);
    rows.push([title, percentile(sample, 0.5).toFixed(1), p99.toFixed(1), p99 < goal ? '' : `**missed**`]);
    process.stderr.write(`${rows.at(-1)?.join(' | ')}\n`);
  }
} finally {
  await db.close();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
report(
  `Lists over ${count.toLocaleString('en')} deliveries of a team`,
  `Each row is the time, in milliseconds, of the function that answers a route, with all its queries. One caller calls the function ${repetitions} times, one call after another, on the embedded PostgreSQL. The deliveries arrived within 30 days at 100 webhooks of 10 factories with 200 automations. Goal for p99: ${goal} ms.`,
  ['read', 'p50 ms', 'p99 ms', 'goal'],
  rows,
);
