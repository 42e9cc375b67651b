import type { Installation as State } from '@runyard/contract/team/installation';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { useClient } from '../../api/session.ts';
import { Empty } from '../../parts/empty.tsx';
import { sizeText } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Ago } from '../../parts/time.tsx';
import { WorkerTable } from '../workers/worker-table.tsx';
import { Section } from './section.tsx';

/** Shows the service processes, the workers, the database and the backups of the whole installation. */
export function Installation() {
  const client = useClient();
  const state = useQuery({
    queryKey: ['installation'],
    queryFn: async () => await client.getInstallation(),
    refetchInterval: 5_000,
  });
  return (
    <>
      <Section
        title="Installation"
        about={
          <>
            The programs of all teams. Only owners of the operator's team see this. <code>bin/runyard doctor</code> on a
            machine says more about it.
          </>
        }
      />
      <Loaded query={state} rows={4}>
        {(found) => (
          <>
            {found.paused_since !== undefined && (
              <p className="note wait" role="status">
                This is a restored copy, and it is paused since <Ago time={found.paused_since} />: `bin/runyard resume`
                lets it start its runs.
              </p>
            )}
            <Services services={found.services} />
            <section className="stack s2" aria-label="Workers of the service">
              <h3>Workers of the service</h3>
              {found.workers.length === 0 ? (
                <Empty title="No worker of the service is connected" command="bin/runyard worker">
                  Runs that name no worker wait until one connects.
                </Empty>
              ) : (
                <WorkerTable label="Workers of the service" workers={found.workers} />
              )}
              {found.gone_workers.length > 0 && <GoneWorkers workers={found.gone_workers} />}
            </section>
            <Storage state={found} />
          </>
        )}
      </Loaded>
    </>
  );
}

function Services({ services }: Pick<State, 'services'>) {
  return (
    <section className="stack s2" aria-label="Services">
      <h3>Services</h3>
      <div className="card">
        <table className="tbl in-card" aria-label="Services">
          <thead>
            <tr>
              <th>Machine</th>
              <th className="w160">Free disk</th>
              <th className="w92">Version</th>
              <th className="w108">Started</th>
              <th className="w108">Seen</th>
            </tr>
          </thead>
          <tbody>
            {services.map((service) => (
              <tr key={`${service.started_at} ${service.host}`}>
                <td className="md">
                  <span className="row">
                    <span
                      className={`dot ${service.is_alive ? (service.problem ? 'wait' : 'ok') : 'bad'}`}
                      aria-hidden="true"
                    />
                    <span className="cut">{visibleText(service.host ?? 'not known')}</span>
                    {!service.is_alive && <span className="tag bad">gone</span>}
                  </span>
                  {service.problem && <p className="dim">{visibleText(service.problem)}</p>}
                </td>
                <td>
                  {service.disk === undefined ? (
                    <span className="dim">not known</span>
                  ) : (
                    `${sizeText(service.disk.free_bytes)} of ${sizeText(service.disk.total_bytes)}`
                  )}
                </td>
                <td>{visibleText(service.version ?? 'not known')}</td>
                <td>
                  <Ago time={service.started_at} />
                </td>
                <td>
                  <Ago time={service.last_seen_at} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function GoneWorkers({ workers }: { workers: State['gone_workers'] }) {
  return (
    <div className="card">
      <table className="tbl in-card" aria-label="Workers that are gone">
        <thead>
          <tr>
            <th>Gone in the last 7 days</th>
            <th className="w160">How</th>
            <th className="w92">Version</th>
            <th className="w108">When</th>
          </tr>
        </thead>
        <tbody>
          {workers.map((worker) => (
            <tr key={worker.worker_host}>
              <td className="md">{visibleText(worker.worker_host)}</td>
              <td>
                {worker.reason === 'lost' ? (
                  <span className="tag bad">lost</span>
                ) : (
                  <span className="mut">it was stopped</span>
                )}
              </td>
              <td>{visibleText(worker.version ?? 'not known')}</td>
              <td>
                <Ago time={worker.gone_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Storage({ state }: { state: State }) {
  const { database, blobs, last_backup_at: backup } = state;
  return (
    <section className="stack s2" aria-label="Storage">
      <h3>Storage</h3>
      <dl className="kv far whole-value">
        <dt>Database</dt>
        <dd>{`PostgreSQL ${visibleText(database.version)}, ${sizeText(database.size_bytes)}, migration ${visibleText(database.migration)}`}</dd>
        <dt>Blobs</dt>
        <dd>{visibleText(blobs)}</dd>
        <dt>Last backup</dt>
        <dd>{backup === undefined ? 'none was made with bin/runyard backup' : <Ago time={backup} />}</dd>
      </dl>
    </section>
  );
}
