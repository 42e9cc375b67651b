/**
 * Soak test: runs the installation of `chaos.ts` under the same load, but without faults. Its memory, open files, processes and rows must
 * not grow with time.
 */
import { readdirSync } from 'node:fs';
import { totalmem } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Queryable } from '../packages/service/src/platform/store/database/database.ts';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { openDatabase } from '../packages/service/src/platform/store/database/open-database.ts';
import { sharedBuffersMb } from '../packages/service/src/platform/store/embedded/postmaster.ts';
import { type Installation, startInstallation } from '../test/chaos/installation.ts';
import { startLoad } from '../test/chaos/load.ts';
import { type Place, startAlone } from '../test/chaos/start-alone.ts';
import { median, memoryOf, report } from './report.ts';

const { values } = parseArgs({
  options: { minutes: { type: 'string' }, seed: { type: 'string' }, write: { type: 'boolean' } },
});
const minutes = Number(values.minutes ?? 60);
const seed = Number(values.seed ?? 1);
const parts = 4;
const samplesOfPart = 10;
/**
 * A value counts as flat if its median in the last quarter of the test is at most this many times its median in the second quarter. The
 * first quarter is not compared, because caches fill during that time.
 */
const growthLimit = 1.15;
const sharedCache = 'database: shared cache, MB';
/** PostgreSQL fills its cache while the database grows. A fifth more is for the other memory that its processes share. */
const sharedCacheLimitMb = 1.2 * sharedBuffersMb(totalmem());

await startAlone(['--minutes', String(minutes), '--seed', String(seed), ...(values.write ? ['--write'] : [])], soak);

/** The values that one round measured, by their names. */
type Sample = ReadonlyMap<string, number>;

async function soak(place: Place): Promise<void> {
  const installation = await startInstallation(place.root, place.weed);
  const db = await openDatabase({
    address: { connectionString: installation.databaseUrl },
    maxConnections: 1,
    log: silentLog,
  });
  const load = await startLoad(installation, seed);
  const parted: Sample[][] = [];
  const rows: { readonly runs: number; readonly counts: Sample }[] = [];
  for (let part = 0; part < parts; part += 1) {
    const samples: Sample[] = [];
    for (let n = 0; n < samplesOfPart; n += 1) {
      await delay((minutes * 60_000) / parts / samplesOfPart);
      samples.push(sampleOf(installation));
    }
    parted.push(samples);
    const counts = await countRows(db);
    rows.push({ runs: counts.get('runs') ?? 0, counts });
    process.stdout.write(`${part + 1} of ${parts}: ${counts.get('runs')} runs\n`);
  }
  const ofPrograms = [...(parted[0]?.[0]?.keys() ?? [])].map((name) => {
    const medians = parted.map((samples) => median(samples.map((sample) => sample.get(name) ?? 0)));
    const flat =
      name === sharedCache
        ? Math.max(...medians) <= sharedCacheLimitMb
          ? 'yes'
          : 'no'
        : isFlat(medians[1] ?? 0, medians[3] ?? 0, 3);
    return [name, ...medians.map(Math.round), flat];
  });
  const ofTables = [...(rows.at(-1)?.counts ?? [])].flatMap(([table, last]) => {
    if (last < 20) return [];
    const counts = rows.map(({ counts }) => counts.get(table) ?? 0);
    // Compare the number of new rows per new run: in the last quarter, a table may not store more rows for a run than in the second quarter.
    const perRun = (from: number, to: number) =>
      ((counts[to] ?? 0) - (counts[from] ?? 0)) / Math.max(1, (rows[to]?.runs ?? 0) - (rows[from]?.runs ?? 0));
    return [[`rows of ${table}`, ...counts, isFlat(perRun(0, 1), perRun(2, 3), 0.2)]];
  });
  const all = [...ofPrograms, ...ofTables];
  const growing = all.filter((row) => row.at(-1) !== 'yes').map(([name]) => name);
  report(
    'Soak',
    `\`bin/chaos --soak --minutes ${minutes} --seed ${seed}\`: 3 services, 4 workers, PostgreSQL and SeaweedFS run in network namespaces. The load is one create a second, one delivery in two seconds, 8 schedules each minute, and 2 readers of the team's stream. The table has the median of each quarter of the time. Memory is PSS in MB, without the cache that the processes of PostgreSQL share. This cache fills while the database grows, so its row is compared with ${Math.round(sharedCacheLimitMb)} MB, which is a fifth more than its configured size. The values of PostgreSQL are for each of its processes, because their number follows the number of connections, and so the load of the machine. The memory of a worker includes its child processes outside of sandboxes. Rows are counted at the end of each quarter. A row is flat if its last quarter is at most ${Math.round((growthLimit - 1) * 100)} % and a small constant above its second quarter. For the rows of a table, the number of new rows per new run is compared instead, in the last quarter and in the second one. Not flat: **${growing.join(', ') || 'nothing'}**. Requests that were sent again: ${load.seen.repeats}; refused: ${load.seen.refusals.length}.`,
    ['measured', '1st quarter', '2nd', '3rd', '4th', 'flat'],
    all,
  );
  await load.stop();
  await db.close();
  for (const reader of load.seen.readers) reader.stop();
  await load.seen.receiver.close();
  for (const group of [/^worker/, /^service/, /^(s3|database)$/])
    await Promise.all(installation.programs.filter(({ name }) => group.test(name)).map((each) => each.stop()));
}

/** Returns whether a value has not grown. `slack`: a growth that is too small to count. */
function isFlat(before: number, after: number, slack: number): string {
  return after <= before * growthLimit + slack ? 'yes' : 'no';
}

function sampleOf({ programs }: Installation): Sample {
  const sample = new Map<string, number>();
  for (const program of programs) {
    const pids = program.pids();
    const sum = (of: (pid: number) => number) => pids.reduce((total, pid) => total + orNone(() => of(pid)), 0);
    const memoryMb = sum((pid) => memoryOf(pid).pssMb - memoryOf(pid).sharedMb);
    const openFiles = sum((pid) => readdirSync(`/proc/${pid}/fd`).length);
    if (program.name === 'database') {
      // PostgreSQL has a process for each connection, and the services open more connections while the machine is busy.
      sample.set('database: MB for each process', memoryMb / Math.max(1, pids.length));
      sample.set('database: open files for each process', openFiles / Math.max(1, pids.length));
      sample.set(
        sharedCache,
        sum((pid) => memoryOf(pid).sharedMb),
      );
    } else {
      sample.set(`${program.name}: MB`, memoryMb);
      sample.set(`${program.name}: open files`, openFiles);
    }
  }
  sample.set('processes', readdirSync('/proc').filter((name) => /^\d+$/.test(name)).length);
  return sample;
}

/** Returns 0 for a process that has just ended. */
function orNone(read: () => number): number {
  try {
    return read() || 0;
  } catch {
    return 0;
  }
}

async function countRows(db: Queryable): Promise<Sample> {
  const tables = await db.query<{ name: string }>(`SELECT relname AS name FROM pg_stat_user_tables ORDER BY relname`);
  const counts = new Map<string, number>();
  for (const { name } of tables) {
    const [row] = await db.query<{ count: number }>(`SELECT count(*) AS count FROM ${name}`);
    counts.set(name, row?.count ?? 0);
  }
  return counts;
}
