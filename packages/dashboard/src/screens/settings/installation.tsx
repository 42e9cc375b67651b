import type { Installation as State } from '@runyard/contract/team/installation';
import { visibleText } from '@runyard/contract/wire/visible';
import { useRead } from '../../api/read.ts';
import { Badge, Dot, Facts, Note, P, Row, Stack, Text } from '../../parts/blocks.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { Empty } from '../../parts/empty.tsx';
import { sizeText } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Ago } from '../../parts/time.tsx';
import { WorkerTable } from '../workers/worker-table.tsx';
import { Section } from './section.tsx';

/** Shows the service processes, the workers, the database and the backups of the whole installation. */
export function Installation() {
  const state = useRead(['installation'], (client) => client.getInstallation(), { refetchInterval: 5_000 });
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
      <DataTable
        aria-label="Services"
        items={services}
        keyOf={({ started_at, host }) => `${started_at} ${host}`}
        columns={(column) => [
          column('Machine', { medium: true }, Machine),
          column('Free disk', { width: 160 }, ({ disk }) =>
            disk ? `${sizeText(disk.free_bytes)} of ${sizeText(disk.total_bytes)}` : <Text tone="dim">not known</Text>,
          ),
          column('Version', { width: 92 }, versionOf),
          column('Started', { width: 108 }, ({ started_at }) => <Ago time={started_at} />),
          column('Seen', { width: 108 }, ({ last_seen_at }) => <Ago time={last_seen_at} />),
        ]}
      />
    </Stack>
  );
}

const Machine = ({ is_alive: isAlive, problem, host }: State['services'][number]) => (
  <>
    <Row as="span">
      <Dot tone={isAlive ? (problem ? 'wait' : 'good') : 'bad'} />
      <Text cut>{visibleText(host ?? 'not known')}</Text>
      {!isAlive && <Badge tone="bad">gone</Badge>}
    </Row>
    {problem && <P tone="dim">{visibleText(problem)}</P>}
  </>
);

const versionOf = ({ version = 'not known' }: { readonly version?: string | undefined }): string =>
  visibleText(version);

function GoneWorkers({ workers }: { workers: State['gone_workers'] }) {
  return (
    <DataTable
      aria-label="Workers that are gone"
      items={workers}
      keyOf={({ worker_host }) => worker_host}
      columns={(column) => [
        column('Gone in the last 7 days', { medium: true }, ({ worker_host: name }) => visibleText(name)),
        column('How', { width: 160 }, ({ reason }) =>
          reason === 'lost' ? <Badge tone="bad">lost</Badge> : <Text tone="muted">it was stopped</Text>,
        ),
        column('Version', { width: 92 }, versionOf),
        column('When', { width: 108 }, ({ gone_at }) => <Ago time={gone_at} />),
      ]}
    />
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
