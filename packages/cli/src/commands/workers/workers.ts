/** Pools of self-hosted workers. */
import type { WorkerPool } from '@runyard/contract/workers/worker-pools';
import type { Command } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { asJson } from '../../input/options.ts';
import { request } from '../../route-commands/row.ts';
import { connect } from '../../service/connect.ts';
import type { Column } from '../../terminal/columns.ts';
import { printList } from '../../terminal/list.ts';

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

/** Lists the pools. For each pool, shows the people and agents whose keys workers may use to connect to the pool. */
async function listWorkerPools(context: Context, options: { readonly json?: true }): Promise<void> {
  const client = connect(context);
  const [{ pools }, { workers }] = await Promise.all([client.listWorkerPools(), client.listConnectedWorkers()]);
  const columns = columnsWith(
    new Map(workers.map(({ worker_host, connection_count }) => [worker_host, connection_count])),
  );
  printList(context, { columns, rows: pools, json: { pools }, none: 'no pools' }, options);
}

const pool = { usage: '<pool>', help: 'name of the workers, as in config.worker_host' };
const connector = {
  usage: '<id>',
  help: 'id of a person (runyard users), an agent identity (runyard identities), or an agent key without one',
};

/** The commands of `workers`. */
export const workers = [
  (noun: Command) =>
    void noun
      .command('list', { isDefault: true })
      .description('list the pools, with their owners and others who connect')
      .option(...asJson)
      .action((options) => listWorkerPools(processContext(), options)),
  request(
    'addWorkerPoolConnector',
    'allow',
    'allow a person or agent to connect workers to a pool; these get its runs, with tokens and secrets',
    {
      arguments: [pool, connector],
      lines: ({ name, connectors }, { principalUid = '' }) => {
        const added = connectors.find(({ principal }) => principal.uid === principalUid)?.principal;
        return `workers of ${added ? nameOf(added) : principalUid} connect as ${name} now`;
      },
    },
  ),
  request('takeOverWorkerPool', 'take-over', 'become the owner of a pool, as an administrator', {
    arguments: [pool],
    lines: ({ name }) => `${name} belongs to you now`,
  }),
  request('removeWorkerPoolConnector', 'deny', 'end the right to connect to a pool, and the connections that use it', {
    arguments: [pool, connector],
    lines: (_, { principalUid, poolName }) => `workers of ${principalUid} do not connect as ${poolName} any more`,
  }),
  request('deleteWorkerPool', 'delete', 'delete a pool; the next worker that connects under its name owns it', {
    arguments: [pool],
    lines: (_, { poolName }) => `${poolName} is deleted`,
  }),
];
