import type { Installation as State } from '@runyard/contract/team/installation';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { useClient } from '../../api/session.ts';
import { Badge, Dot, Facts, Note, P, Row, Stack, Text } from '../../parts/blocks.tsx';
import { Empty } from '../../parts/empty.tsx';
import { sizeText } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Cell, Table } from '../../parts/table.tsx';
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
              <Note as="p" tone="wait" role="status">
                This is a restored copy, and it is paused since <Ago time={found.paused_since} />: `bin/runyard resume`
                lets it start its runs.
              </Note>
            )}
            <Services services={found.services} />
            <Stack as="section" gap={2} aria-label="Workers of the service">
              <h3>Workers of the service</h3>
              {found.workers.length === 0 ? (
                <Empty title="No worker of the service is connected" command="bin/runyard worker">
                  Runs that name no worker wait until one connects.
                </Empty>
              ) : (
                <WorkerTable label="Workers of the service" workers={found.workers} />
              )}
              {found.gone_workers.length > 0 && <GoneWorkers workers={found.gone_workers} />}
            </Stack>
            <Storage state={found} />
          </>
        )}
      </Loaded>
    </>
  );
}

function Services({ services }: Pick<State, 'services'>) {
  return (
    <Stack as="section" gap={2} aria-label="Services">
      <h3>Services</h3>
      <Table
        aria-label="Services"
        columns={[
          { name: 'Machine' },
          { name: 'Free disk', width: 160 },
          { name: 'Version', width: 92 },
          { name: 'Started', width: 108 },
          { name: 'Seen', width: 108 },
        ]}
      >
        {services.map((service) => (
          <tr key={`${service.started_at} ${service.host}`}>
            <Cell medium>
              <Row as="span">
                <Dot tone={service.is_alive ? (service.problem ? 'wait' : 'good') : 'bad'} />
                <Text cut>{visibleText(service.host ?? 'not known')}</Text>
                {!service.is_alive && <Badge tone="bad">gone</Badge>}
              </Row>
              {service.problem && <P tone="dim">{visibleText(service.problem)}</P>}
            </Cell>
            <td>
              {service.disk === undefined ? (
                <Text tone="dim">not known</Text>
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
      </Table>
    </Stack>
  );
}

function GoneWorkers({ workers }: { workers: State['gone_workers'] }) {
  return (
    <Table
      aria-label="Workers that are gone"
      columns={[
        { name: 'Gone in the last 7 days' },
        { name: 'How', width: 160 },
        { name: 'Version', width: 92 },
        { name: 'When', width: 108 },
      ]}
    >
      {workers.map((worker) => (
        <tr key={worker.worker_host}>
          <Cell medium>{visibleText(worker.worker_host)}</Cell>
          <td>
            {worker.reason === 'lost' ? <Badge tone="bad">lost</Badge> : <Text tone="muted">it was stopped</Text>}
          </td>
          <td>{visibleText(worker.version ?? 'not known')}</td>
          <td>
            <Ago time={worker.gone_at} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Storage({ state }: { state: State }) {
  const { database, blobs, last_backup_at: backup } = state;
  return (
    <Stack as="section" gap={2} aria-label="Storage">
      <h3>Storage</h3>
      <Facts far whole>
        <dt>Database</dt>
        <dd>{`PostgreSQL ${visibleText(database.version)}, ${sizeText(database.size_bytes)}, migration ${visibleText(database.migration)}`}</dd>
        <dt>Blobs</dt>
        <dd>{visibleText(blobs)}</dd>
        <dt>Last backup</dt>
        <dd>{backup === undefined ? 'none was made with bin/runyard backup' : <Ago time={backup} />}</dd>
      </Facts>
    </Stack>
  );
}
