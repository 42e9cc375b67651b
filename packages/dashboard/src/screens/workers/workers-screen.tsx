import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useClient, useSession } from '../../api/session.ts';
import { Page } from '../../frame/page.tsx';
import { CommandBlock } from '../../parts/copy.tsx';
import { Empty } from '../../parts/empty.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { WorkerPools } from './worker-pools.tsx';
import { WorkerTable } from './worker-table.tsx';

/**
 * Shows the connected workers with their isolation and free slots, and the worker pools: the names under which people may connect workers.
 */
export function WorkersScreen() {
  const client = useClient();
  const { team } = useSession();
  const connected = useQuery({
    queryKey: ['workers', team.uid],
    queryFn: async () => await client.listConnectedWorkers({}),
    refetchInterval: 5_000,
  });
  return (
    <Page title="Workers">
      <div className="wide">
        <Loaded query={connected} rows={3}>
          {({ workers, hosted_workers: hosted }) => (
            <>
              <section className="stack s2" aria-label="Workers of the service">
                <h2>Workers of the service</h2>
                <p className="mut">
                  They take the runs of all teams that name no worker.
                  {hosted === undefined &&
                    ' Only the operator of the service sees these workers. Each run shows the level of its own sandbox.'}
                </p>
                {hosted?.length === 0 && (
                  <Empty title="No worker of the service is connected" command="bin/runyard worker">
                    Runs that name no worker wait until one connects.
                  </Empty>
                )}
                {hosted !== undefined && hosted.length > 0 && (
                  <WorkerTable label="Workers of the service" workers={hosted} />
                )}
              </section>
              <section className="stack s2" aria-label="Workers of the team">
                <h2>Workers of the team</h2>
                <p className="mut">On machines of the team. They take the runs whose worker_host is their name.</p>
                {workers.length === 0 ? (
                  <p className="dim">None is connected.</p>
                ) : (
                  <WorkerTable label="Workers of the team" workers={workers} />
                )}
              </section>
            </>
          )}
        </Loaded>
        <WorkerPools />
        <section className="stack s2">
          <h2>Connect one</h2>
          <p className="mut">
            With a key of this team (
            <Link className="link" to="/settings/$tab" params={{ tab: 'keys' }}>
              Keys
            </Link>
            ), on a machine that reaches this address:
          </p>
          <CommandBlock
            command={`RUNYARD_API_KEY=… RUNYARD_WORKER_NAME=build-1 RUNYARD_BASE_URL=${location.origin} bin/runyard worker`}
          />
        </section>
      </div>
    </Page>
  );
}
