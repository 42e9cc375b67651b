import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useClient, useSession } from '../../api/session.ts';
import { Page } from '../../frame/page.tsx';
import { CommandBlock } from '../../parts/copy.tsx';
import { Empty, SkeletonRows } from '../../parts/empty.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Ago } from '../../parts/time.tsx';

/** Lists the workers of the team that are connected now. */
export function WorkersScreen() {
  const client = useClient();
  const { team } = useSession();
  const { data, error, refetch } = useQuery({
    queryKey: ['workers', team.uid],
    queryFn: async () => (await client.listConnectedWorkers({})).workers,
    refetchInterval: 5_000,
  });
  return (
    <Page title="Workers">
      <div className="wide">
        <p className="mut">
          Workers of the team on its own machines. The workers of the service itself serve every run that names no
          worker, and are not listed here: <code>bin/runyard doctor</code> tells how they isolate their sandboxes, and
          each run shows the level it got.
        </p>
        <Problem error={error} onRetry={() => void refetch()} />
        {data === undefined && !error && <SkeletonRows count={3} />}
        {data?.length === 0 && (
          <Empty title="No worker of the team is connected" command="bin/runyard worker --id build-1 --base-url URL">
            A worker on a machine of yours takes the runs whose configuration names it as worker_host.
          </Empty>
        )}
        {data !== undefined && data.length > 0 && (
          <div className="card">
            <table className="tbl in-card">
              <thead>
                <tr>
                  <th>Worker</th>
                  <th className="num w120">Connections</th>
                  <th className="w140">Connected</th>
                  <th className="w140">Last sign of life</th>
                </tr>
              </thead>
              <tbody>
                {data.map((worker) => (
                  <tr key={worker.worker_host}>
                    <td className="md">
                      <span className="row">
                        <span className="dot ok" aria-hidden="true" />
                        {visibleText(worker.worker_host)}
                      </span>
                    </td>
                    <td className="num">{worker.connection_count}</td>
                    <td>
                      <Ago time={worker.connected_at} />
                    </td>
                    <td>
                      <Ago time={worker.last_seen_at} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
        <section className="stack s2">
          <h2>Connect one</h2>
          <p className="mut">
            With a key of this team (
            <Link className="link" to="/settings/$tab" params={{ tab: 'keys' }}>
              Keys
            </Link>
            ), on a machine that reaches this address:
          </p>
          <CommandBlock command={`RUNYARD_API_KEY=… RUNYARD_BASE_URL=${location.origin} bin/runyard worker`} />
        </section>
      </div>
    </Page>
  );
}
