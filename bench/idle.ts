/** Measures the processor time of an idle system: service, worker and the embedded PostgreSQL, without runs. */
import { setTimeout as delay } from 'node:timers/promises';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { openDatabase } from '../packages/service/src/platform/store/database/open-database.ts';
import { findEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { type System, startSystem } from '../test/support/system.ts';
import { cpuSecondsWithEnded, processesBelow } from './processes.ts';
import { report } from './report.ts';

const seconds = Number(process.env.BENCH_SECONDS ?? 60);
const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
/** Time that the programs need after a start for compilations, the first autovacuum and the first checkpoint. */
const settleSeconds = Number(process.env.BENCH_SETTLE_SECONDS ?? 30);

/** Processor time in seconds since the start of each process, and the number of transactions of the server. */
interface Totals {
  readonly service: number;
  readonly worker: number;
  readonly postgres: number;
  readonly transactions: number;
}

async function readTotals(system: System, countTransactions: () => Promise<number>): Promise<Totals> {
  const cpuOf = (pid: number | undefined) => (pid === undefined ? Number.NaN : cpuSecondsWithEnded(pid));
  // Also count ended processes of PostgreSQL: those of closed connections and of autovacuum.
  const postgres = processesBelow(`${system.dataDir}/postgres`).reduce((sum, pid) => sum + cpuSecondsWithEnded(pid), 0);
  return {
    service: cpuOf(system.service().pid),
    worker: cpuOf(system.worker().pid),
    postgres,
    transactions: await countTransactions(),
  };
}

const system = await startSystem({ fromSources: true });
try {
  const embedded = await findEmbeddedPostgres(`${system.dataDir}/postgres`);
  if (embedded === undefined) throw new Error('the embedded PostgreSQL does not run');
  const db = await openDatabase({ address: embedded.connection, maxConnections: 1, log: silentLog });
  const countTransactions = async () => {
    const [row] = await db.query<{ count: number }>(
      'SELECT sum(xact_commit + xact_rollback)::float8 AS count FROM pg_stat_database',
    );
    return row?.count ?? Number.NaN;
  };
  try {
    await delay(settleSeconds * 1000);
    const rows: string[][] = [];
    const totals: number[] = [];
    let before = await readTotals(system, countTransactions);
    for (let round = 1; round <= rounds; round += 1) {
      await delay(seconds * 1000);
      const after = await readTotals(system, countTransactions);
      const perSecond = (name: keyof Totals) => (after[name] - before[name]) / seconds;
      const parts = (['service', 'worker', 'postgres'] as const).map((name) => 1000 * perSecond(name));
      const total = parts.reduce((sum, ms) => sum + ms, 0);
      totals.push(total);
      rows.push([String(round), ...[...parts, total].map((ms) => ms.toFixed(1)), perSecond('transactions').toFixed(1)]);
      before = after;
    }
    report(
      'Processor time of an idle system',
      `A service, its embedded PostgreSQL and a worker run without runs, schedules and clients. The table shows the milliseconds of processor time that they use per second, over ${seconds} s in each round. The first round begins ${settleSeconds} s after the start. Transactions: the sum over all databases of the server. Goal: at most 15 ms a second. Worst round: **${Math.max(...totals).toFixed(1)} ms**.`,
      ['round', 'service', 'worker', 'PostgreSQL', 'together', 'transactions a second'],
      rows,
    );
  } finally {
    await db.close();
  }
} finally {
  await system.stop();
}
