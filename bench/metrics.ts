/**
 * Measures creates per second with metrics and traces. Compares them, in turns on one database, with the same service without metrics and
 * traces.
 */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { findEmbeddedPostgres, startEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { newRawKey } from '../packages/service/src/team/access/keys/key.ts';
import { startFakeCollector } from '../test/fakes/collector.ts';
import { freePort } from '../test/support/free-port.ts';
import { type OneService, startService } from '../test/support/service-process.ts';
import { loadWithCreates, type Round } from './create-load.ts';
import { median, report } from './report.ts';

const callers = Number(process.env.BENCH_CONCURRENCY ?? 32);
const seconds = Number(process.env.BENCH_SECONDS ?? 2);
const rounds = Number(process.env.BENCH_ROUNDS ?? 12);

/** The result of a round, with the processor time of the service for one create. */
interface Measured extends Round {
  readonly processorMs: number;
}

/** Returns the processor time of a process in milliseconds: the sum of utime and stime of proc(5), which are in hundredths of a second. */
function processorMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

const folder = await mkdtemp(path.join(tmpdir(), 'runyard-bench-'));
const server = await startEmbeddedPostgres({ dataDir: folder, log: silentLog });
const collector = await startFakeCollector();
const key = newRawKey();
const services: OneService[] = [];
let scraping: NodeJS.Timeout | undefined;
try {
  const { url: databaseUrl } = (await findEmbeddedPostgres(folder)) ?? {};
  if (databaseUrl === undefined) throw new Error('the embedded PostgreSQL does not run');
  const ports = [await freePort(), await freePort()];
  const listen = (port: number | undefined) => ({ RUNYARD_METRICS_LISTEN: `127.0.0.1:${port}` });
  const traces = {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.01',
  };
  const kinds: readonly (readonly [string, Record<string, string>])[] = [
    ['without', {}],
    ['metrics, scraped every 5 s', listen(ports[0])],
    // Measure a second service without metrics, to show how much the results of two equal services differ.
    ['without, again', {}],
    ['metrics, and traces of 1 %', { ...listen(ports[1]), ...traces }],
  ];
  for (const [, env] of kinds)
    services.push(await startService({ databaseUrl, key, env: { RUNYARD_LOG: 'warn', ...env } }));
  scraping = setInterval(() => {
    for (const port of ports) void fetch(`http://127.0.0.1:${port}/metrics`).then((answer) => answer.text());
  }, 5_000);
  const load = async (service: OneService): Promise<Measured> => {
    const before = processorMs(service.pid);
    const round = await loadWithCreates(
      `${service.origin}/api/v1/agent/runs`,
      { authorization: `Bearer ${key}` },
      { callers, seconds },
    );
    return { ...round, processorMs: (processorMs(service.pid) - before) / round.creates };
  };
  for (const service of services) await load(service);
  const results: Measured[][] = services.map(() => []);
  // Begin each round with another service. While a service is measured, the database still has work from the service before it, so the
  // order must change.
  for (let round = 0; round < rounds; round += 1) {
    for (let turn = 0; turn < services.length; turn += 1) {
      const index = (round + turn) % services.length;
      const service = services[index];
      if (service) results[index]?.push(await load(service));
    }
  }
  const ratiosOf = (index: number, value: (round: Measured) => number) =>
    (results[index] ?? []).map((round, at) => {
      const [base] = (results[0] ?? []).slice(at, at + 1);
      return value(round) / (base ? value(base) : Number.NaN);
    });
  const shown = (ratios: readonly number[]) =>
    `${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`;
  report(
    'Creates with metrics and traces',
    `${callers} callers, ${rounds} rounds of ${seconds} s in turns, on one embedded PostgreSQL. Callers and the collector of traces use the same cores. Goal: at least 0.95 times as many creates a second with metrics, and at least 0.9 times as many with metrics and traces of 1 % of the requests. The processor time is that of the service process for one create; other programs of the machine change it less than the rate of creates. Each ratio is a median, with its spread in parentheses.`,
    ['service', 'creates/s', 'p50 ms', 'p99 ms', 'ratio of creates/s', 'processor ms', 'ratio of processor ms'],
    kinds.map(([name], index) => {
      const own = results[index] ?? [];
      return [
        name,
        Math.round(median(own.map((round) => round.perSecond))),
        median(own.map((round) => round.p50)).toFixed(1),
        median(own.map((round) => round.p99)).toFixed(1),
        shown(ratiosOf(index, (round) => round.perSecond)),
        median(own.map((round) => round.processorMs)).toFixed(2),
        shown(ratiosOf(index, (round) => round.processorMs)),
      ];
    }),
  );
} finally {
  clearInterval(scraping);
  await Promise.all(services.map((service) => service.stop()));
  await collector.close();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
