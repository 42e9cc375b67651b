import { apiKey, type Context, originOfFolder } from '../context/context.ts';
import { connect } from '../service/connect.ts';
import { harmlessLine } from '../terminal/harmless.ts';
import type { Finding } from './finding.ts';

const name = 'workers';
const patienceMs = 5_000;

/** The finding about the workers of the running service, and whether one of them takes runs. */
interface Workers {
  readonly findings: readonly Finding[];
  readonly takeRuns: boolean;
}

/** Asks the service of the data folder for its connected workers. Reports nothing if no service runs there. */
export async function checkWorkers(context: Context): Promise<Workers> {
  if (originOfFolder(context.folder) === null) return { findings: [], takeRuns: false };
  if (apiKey(context) === null)
    return {
      findings: [{ name, level: 'fact', detail: 'not checked: there is no API key here', fix: 'set RUNYARD_API_KEY' }],
      takeRuns: false,
    };
  try {
    const found = await connect(context).listConnectedWorkers({ signal: AbortSignal.timeout(patienceMs) });
    const all = [...(found.hosted_workers ?? []), ...found.workers].flatMap(({ worker_host: host, connections }) =>
      connections.map(({ problem, draining }) => ({ host, problem, draining })),
    );
    return { findings: [findingOf(all)], takeRuns: all.some(takesRuns) };
  } catch (error) {
    const detail = `not checked: ${harmlessLine((error as Error).message)}`;
    return { findings: [{ name, level: 'note', detail }], takeRuns: false };
  }
}

interface ConnectedWorker {
  readonly host: string;
  readonly problem: string | undefined;
  readonly draining: boolean;
}

const takesRuns = ({ problem, draining }: ConnectedWorker): boolean => problem === undefined && !draining;

function findingOf(workers: readonly ConnectedWorker[]): Finding {
  if (workers.length === 0)
    return {
      name,
      level: 'bad',
      detail: 'none is connected to the service: runs wait for one',
      fix: 'start one (bin/runyard worker, systemctl start runyard-worker), or read its log',
    };
  const able = workers.filter(takesRuns).length;
  const others = workers
    .filter((worker) => !takesRuns(worker))
    .map(
      ({ host, problem }) =>
        `\n${harmlessLine(host)}: ${harmlessLine(problem ?? 'takes no new runs, because it stops')}`,
    );
  return {
    name,
    level: able === 0 ? 'bad' : others.length > 0 ? 'note' : 'good',
    detail: `${able} of ${workers.length} connected ${workers.length === 1 ? 'worker takes' : 'workers take'} runs${others.join('')}`,
  };
}
