/** Runs one chaos test: starts load and faults, and then checks all promises. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openS3Blobs } from '../../packages/service/src/platform/store/blobs/s3-blobs.ts';
import type { Database } from '../../packages/service/src/platform/store/database/database.ts';
import { silentLog } from '../../packages/service/src/platform/store/database/log.ts';
import { openDatabase } from '../../packages/service/src/platform/store/database/open-database.ts';
import { findBlindSpots } from './check.ts';
import { checks } from './checks.ts';
import { readFailures } from './failures.ts';
import { inflict } from './inflict.ts';
import { type Installation, startInstallation } from './installation.ts';
import { type Load, startLoad } from './load.ts';
import { leftProcesses, leftSandboxes, sweepBlobs } from './orphans.ts';
import { planFaults } from './plan.ts';
import type { Place } from './start-alone.ts';
import { canSeeDoubles, watchCommands } from './watch.ts';

export interface ChaosOptions extends Place {
  readonly minutes: number;
  readonly seed: number;
  readonly say: (line: string) => void;
}

export interface CheckedPromise {
  readonly promise: string;
  readonly count: number;
  readonly faults: readonly string[];
}

export interface ChaosResult {
  readonly promises: readonly CheckedPromise[];
  /** `plants`: number of faults that were planted to test the checks. `blind`: the planted faults that their check did not find. */
  readonly plants: number;
  readonly blind: readonly string[];
  readonly inflicted: Readonly<Record<string, number>>;
  /** `ends`: number of runs by state. `errors`: number of runs in the state ERROR by error code. */
  readonly ends: Readonly<Record<string, number>>;
  readonly errors: Readonly<Record<string, number>>;
  /** Lines about runs that ended FAILED or ERROR. */
  readonly failures: readonly string[];
  readonly repeats: number;
  readonly swept: number;
  readonly settledSeconds: number;
  readonly postgres: string;
}

const settleLimitMs = 240_000;

/**
 * Runs the test. The process must be alone in new network, mount and process namespaces, because the test makes mounts and nodes that
 * only the end of these namespaces removes.
 */
export async function runChaos({ root, weed, minutes, seed, say }: ChaosOptions): Promise<ChaosResult> {
  const installation = await startInstallation(root, weed);
  const load = await startLoad(installation, seed);
  say('the load has begun');
  const watch = watchCommands();
  const inflicted = await inflict(installation, planFaults(seed, minutes), say);
  say('the faults have ended');
  const db = await openDatabase({
    address: { connectionString: installation.databaseUrl },
    maxConnections: 2,
    log: silentLog,
  });
  const settledSeconds = await settle(installation, db, load);
  const { seen } = load;
  const promises: CheckedPromise[] = [];
  const blind: string[] = [];
  for (const check of checks) {
    promises.push({ promise: check.promise, ...(await check.find(db, seen)) });
    blind.push(...(await findBlindSpots(db, check, seen)));
  }
  const [version] = await db.query<{ server_version: string }>('SHOW server_version');
  const ends = await countBy(db, 'state', 'true');
  const errors = await countBy(db, 'error_code', `state = 'ERROR'`);
  const failures = await readFailures(db);
  const doubles = await watch.stop();
  promises.push({ promise: 'no execution of a run works beside another one', count: watch.seen(), faults: doubles });
  if (!(await canSeeDoubles())) blind.push('two sandboxes that work on one run');
  promises.push({
    promise: 'no client gets an answer that it does not expect',
    count: seen.creates.size + seen.deliveries.size,
    faults: seen.refusals,
  });

  const programs = (prefix: RegExp) => installation.programs.filter(({ name }) => prefix.test(name));
  for (const group of [/^worker/, /^service/]) await Promise.all(programs(group).map((each) => each.stop()));
  const exits = programs(/^(worker|service)/).flatMap((each) => each.exits());
  promises.push({ promise: 'no service and no worker ends by itself', count: 7, faults: exits });

  const blobs = await checkBlobs(installation, db);
  promises.push({ promise: 'each blob has its row, and each row its blob', count: blobs.count, faults: blobs.faults });
  blind.push(...blobs.blind);
  await db.close();
  await Promise.all(programs(/^(s3|database)$/).map((each) => each.stop()));
  const left = await checkLeftovers(installation);
  promises.push({
    promise: 'no process, sandbox, loop disk, mount or namespace is left',
    count: installation.programs.length,
    faults: left.faults,
  });
  blind.push(...left.blind);
  await seen.receiver.close();
  const plants = checks.reduce((sum, each) => sum + each.plants.length, 0) + blobs.plants + left.plants + 1;
  return {
    promises,
    plants,
    blind,
    inflicted,
    ends,
    errors,
    failures,
    repeats: seen.repeats,
    swept: blobs.swept,
    settledSeconds,
    postgres: version?.server_version ?? '',
  };
}

/** Ends the load, and waits until no check finds a fault, at most `settleLimitMs`. Returns the duration in seconds. */
async function settle(installation: Installation, db: Database, load: Load): Promise<number> {
  const began = performance.now();
  await installation.untilReady();
  await load.stop();
  const { seen } = load;
  seen.schedulesEndedAt = await endSchedules(db);
  for (;;) {
    // The pause before the next attempt of a delivery can be hours, so make all pending deliveries due now.
    await db.query(
      `UPDATE event_deliveries SET next_attempt_at = now() WHERE status = 'pending' AND leased_until IS NULL`,
    );
    const found = await Promise.all(checks.map((check) => check.find(db, seen)));
    const isOver = performance.now() - began > settleLimitMs;
    if (isOver || found.every(({ faults }) => faults.length === 0)) break;
    await delay(2_000);
  }
  for (const reader of seen.readers) reader.stop();
  return Math.round((performance.now() - began) / 1000);
}

/**
 * Waits until no fire is late, and disables the schedules. Returns the time up to which the schedules must have fired. If fires stay
 * late, ends the wait after `settleLimitMs`, and the check of the schedules then finds these fires.
 */
async function endSchedules(db: Database): Promise<string> {
  for (const began = performance.now(); ; await delay(500)) {
    const isOver = performance.now() - began > settleLimitMs;
    const [ended] = await db.query<{ at: string; is_late: boolean }>(
      `WITH late AS (SELECT EXISTS (SELECT FROM schedules WHERE next_run_at <= now()) AS is_late), ended AS (
         UPDATE schedules SET enabled = false, next_run_at = NULL FROM late WHERE $1 OR NOT is_late
       ) SELECT now()::text AS at, is_late FROM late`,
      [isOver],
    );
    if (ended && (isOver || !ended.is_late)) return ended.at;
  }
}

async function countBy(db: Database, column: string, where: string): Promise<Record<string, number>> {
  const rows = await db.query<{ name: string; count: number }>(
    `SELECT coalesce(${column}, 'none') AS name, count(*) AS count FROM runs WHERE ${where} GROUP BY 1`,
  );
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]));
}

async function checkBlobs({ blobs: { url, env } }: Installation, db: Database) {
  Object.assign(process.env, env);
  const { hostname: bucket, pathname } = new URL(url);
  const blobs = await openS3Blobs(
    { kind: 's3', bucket, prefix: `${pathname.slice(1)}/` },
    { encryption: undefined, presigns: false, log: silentLog },
  );
  const { blobs: count, swept, faults } = await sweepBlobs(db, blobs);
  const blind: string[] = [];
  const planted = 'planted/blob';
  await blobs.put(
    planted,
    (async function* () {
      yield Buffer.from('x');
    })(),
    { maxBytes: 1 },
  );
  if (!(await sweepBlobs(db, blobs)).faults.some((fault) => fault.includes(planted))) blind.push(planted);
  await blobs.delete(planted);
  for await (const { key } of blobs.list()) {
    if (!key.startsWith('transcripts/')) continue;
    await blobs.delete(key);
    if (!(await sweepBlobs(db, blobs)).faults.some((fault) => fault.includes(key))) blind.push(`deleted ${key}`);
    break;
  }
  return { count, swept, faults, blind, plants: 2 };
}

async function checkLeftovers(installation: Installation) {
  const find = () => [...leftProcesses(), ...leftSandboxes(installation)];
  let faults = find();
  for (let tries = 0; faults.length > 0 && tries < 50; tries += 1) {
    await delay(200);
    faults = find();
  }
  const before = faults.length;
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  const folder = path.join(installation.program('worker1').node.folder, 'worker/state/s/planted');
  mkdirSync(folder, { recursive: true });
  const blind = find().length === before + 2 ? [] : ['a process and the folder of a sandbox'];
  rmSync(folder, { recursive: true });
  child.kill();
  await once(child, 'exit');
  return { faults, blind, plants: 2 };
}
