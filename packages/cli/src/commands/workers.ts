import type { WorkerPool } from '@runyard/contract/workers/worker-pools';
import type { Command } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import type { Column } from '../live/columns.ts';
import { harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { asJson } from '../options.ts';
import { reportWaiting } from './report-waiting.ts';

type Profile = WorkerPool['owner'];

const nameOf = ({ display_name, uid }: Profile): string => (display_name ? `${display_name} (${uid})` : uid);

const columnsWith = (connections: ReadonlyMap<string, number>): Column<WorkerPool>[] => [
  { header: 'POOL', text: ({ name }) => name },
  { header: 'CONNECTIONS', text: ({ name }) => String(connections.get(name) ?? 0) },
  { header: 'OWNER', text: ({ owner }) => nameOf(owner) },
  {
    header: 'OTHERS',
    flexible: true,
    text: ({ connectors }) => connectors.map(({ principal }) => nameOf(principal)).join(', '),
  },
];

/** Lists the pools of self-hosted workers. For each pool, shows the people and agents whose keys workers may use to connect to the pool. */
async function listWorkerPools(context: Context, options: { readonly json?: true }): Promise<void> {
  const client = connect(context);
  const [{ pools }, { workers }] = await Promise.all([client.listWorkerPools(), client.listConnectedWorkers()]);
  const columns = columnsWith(
    new Map(workers.map(({ worker_host, connection_count }) => [worker_host, connection_count])),
  );
  printList(context, { columns, rows: pools, json: { pools }, none: 'no pools' }, options);
}

/** Allows workers to connect to a pool with the keys of a person or service account. */
async function allowWorkers(context: Context, poolName: string, principalUid: string): Promise<void> {
  const pool = await connect(context).addWorkerPoolConnector({ params: { poolName, principalUid } });
  const added = pool.connectors.find(({ principal }) => principal.uid === principalUid)?.principal;
  context.out(`workers of ${harmlessLine(added ? nameOf(added) : principalUid)} connect as ${pool.name} now\n`);
  reportWaiting(context, pool.waiting);
}

/** Removes the right to connect to a pool, and closes the connections that use this right. */
async function denyWorkers(context: Context, poolName: string, principalUid: string): Promise<void> {
  await connect(context).removeWorkerPoolConnector({ params: { poolName, principalUid } });
  context.out(`workers of ${principalUid} do not connect as ${poolName} any more\n`);
}

/** Makes the caller, an administrator, the owner of a pool. */
async function takeOverWorkerPool(context: Context, poolName: string): Promise<void> {
  const pool = await connect(context).takeOverWorkerPool({ params: { poolName } });
  context.out(`${pool.name} belongs to you now\n`);
  reportWaiting(context, pool.waiting);
}

/** Deletes a pool. The next worker that connects under its name creates the pool again. */
async function deleteWorkerPool(context: Context, poolName: string): Promise<void> {
  await connect(context).deleteWorkerPool({ params: { poolName } });
  context.out(`${poolName} is deleted\n`);
}

const poolHelp = 'name of the workers, as in config.worker_host';
const connectorHelp =
  'id of a person (runyard users), an agent identity (runyard identities), or an agent key without one';

/** Declares the command `workers`. */
export function declareWorkers(workers: Command): void {
  workers
    .command('list', { isDefault: true })
    .description('list the pools, with their owners and others who connect')
    .option(...asJson)
    .action((options) => listWorkerPools(processContext(), options));
  workers
    .command('allow')
    .description('allow a person or agent to connect workers to a pool; these get its runs, with tokens and secrets')
    .argument('<pool>', poolHelp)
    .argument('<id>', connectorHelp)
    .action((pool, uid) => allowWorkers(processContext(), pool, uid));
  workers
    .command('take-over')
    .description('become the owner of a pool, as an administrator')
    .argument('<pool>', poolHelp)
    .action((pool) => takeOverWorkerPool(processContext(), pool));
  workers
    .command('deny')
    .description('end the right to connect to a pool, and the connections that use it')
    .argument('<pool>', poolHelp)
    .argument('<id>', connectorHelp)
    .action((pool, uid) => denyWorkers(processContext(), pool, uid));
  workers
    .command('delete')
    .description('delete a pool; the next worker that connects under its name owns it')
    .argument('<pool>', poolHelp)
    .action((pool) => deleteWorkerPool(processContext(), pool));
}
