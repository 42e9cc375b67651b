import { useTeamRead } from '../../api/read.ts';
import { Page } from '../../frame/page.tsx';
import { Content, P, Stack, TextLink } from '../../parts/blocks.tsx';
import { CommandBlock } from '../../parts/copy.tsx';
import { Empty } from '../../parts/empty.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { WorkerPools } from './worker-pools.tsx';
import { WorkerTable } from './worker-table.tsx';

/**
 * Shows the connected workers with their isolation and free slots, and the worker pools: the names under which people may connect workers.
 */
export function WorkersScreen() {
  const connected = useTeamRead(['workers'], (client) => client.listConnectedWorkers({}), { refetchInterval: 5_000 });
  return (
    <Page title="Workers">
      <Content>
        <Loaded query={connected} rows={3}>
          {({ workers, hosted_workers: hosted }) => (
            <>
              <Stack as="section" gap={2} aria-label="Workers of the service">
                <h2>Workers of the service</h2>
                <P tone="muted">
                  They take the runs of all teams that name no worker.
                  {hosted === undefined &&
                    ' Only the operator of the service sees these workers. Each run shows the level of its own sandbox.'}
                </P>
                {hosted?.length === 0 && (
                  <Empty title="No worker of the service is connected" command="bin/runyard worker">
                    Runs that name no worker wait until one connects.
                  </Empty>
                )}
                {hosted !== undefined && hosted.length > 0 && (
                  <WorkerTable label="Workers of the service" workers={hosted} />
                )}
              </Stack>
              <Stack as="section" gap={2} aria-label="Workers of the team">
                <h2>Workers of the team</h2>
                <P tone="muted">On machines of the team. They take the runs whose worker_host is their name.</P>
                {workers.length === 0 ? (
                  <P tone="dim">None is connected.</P>
                ) : (
                  <WorkerTable label="Workers of the team" workers={workers} />
                )}
              </Stack>
            </>
          )}
        </Loaded>
        <WorkerPools />
        <Stack as="section" gap={2}>
          <h2>Connect one</h2>
          <P tone="muted">
            With a key of this team (
            <TextLink to="/settings/$tab" params={{ tab: 'keys' }}>
              Keys
            </TextLink>
            ), on a machine that reaches this address:
          </P>
          <CommandBlock
            command={`RUNYARD_API_KEY=… RUNYARD_WORKER_NAME=build-1 RUNYARD_BASE_URL=${location.origin} bin/runyard worker`}
          />
        </Stack>
      </Content>
    </Page>
  );
}
