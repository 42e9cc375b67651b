import type { WorkerPool } from '@runyard/contract/workers/worker-pools';
import { connect } from '../api.ts';
import type { Context } from '../context.ts';
import type { Column } from '../live/columns.ts';
import { harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';

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

/** Lists the pools of self-hosted workers, with those whose keys connect. */
export async function listWorkerPools(context: Context, options: { readonly json?: true }): Promise<void> {
  const client = connect(context);
  const [{ pools }, { workers }] = await Promise.all([client.listWorkerPools(), client.listConnectedWorkers()]);
  const columns = columnsWith(
    new Map(workers.map(({ worker_host, connection_count }) => [worker_host, connection_count])),
  );
  printList(context, { columns, rows: pools, json: { pools }, none: 'no pools' }, options);
}

/** Lets the keys of a person or service account connect to a pool. */
export async function allowWorkers(context: Context, poolName: string, principalUid: string): Promise<void> {
  const pool = await connect(context).addWorkerPoolConnector({ params: { poolName, principalUid } });
  const added = pool.connectors.find(({ principal }) => principal.uid === principalUid)?.principal;
  context.out(`workers of ${harmlessLine(added ? nameOf(added) : principalUid)} connect as ${pool.name} now\n`);
}

/** Ends the right to connect to a pool, and the connections that use it. */
export async function denyWorkers(context: Context, poolName: string, principalUid: string): Promise<void> {
  await connect(context).removeWorkerPoolConnector({ params: { poolName, principalUid } });
  context.out(`workers of ${principalUid} do not connect as ${poolName} any more\n`);
}

/** Deletes a pool; the next connection under its name makes it anew. */
export async function deleteWorkerPool(context: Context, poolName: string): Promise<void> {
  await connect(context).deleteWorkerPool({ params: { poolName } });
  context.out(`${poolName} is deleted\n`);
}
