import type { Role } from '@runyard/contract/wire/access';
import { visibleText } from '@runyard/contract/wire/visible';
import type { WorkerPool } from '@runyard/contract/workers/worker-pools';
import { useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { useIdentities, useMembers } from '../../api/lists.ts';
import { useRead } from '../../api/read.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { P, Row, Stack, Text } from '../../parts/blocks.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { SelectField } from '../../parts/form.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { nameOf, Person } from '../../parts/person.tsx';
import { AskButton } from '../../parts/question.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Ago } from '../../parts/time.tsx';

const FormDialog = lazy(async () => ({ default: (await import('../../parts/form-dialog.tsx')).FormDialog }));

/** Shows the names under which workers of the team connect, and whose keys may connect under each name. */
export function WorkerPools() {
  const { team } = useSession();
  const queries = useQueryClient();
  const [allowing, setAllowing] = useState<WorkerPool | undefined>();
  const key = ['worker-pools', team.uid];
  const pools = useRead(key, async (client) => (await client.listWorkerPools({})).pools);
  const refresh = async () => await queries.invalidateQueries({ queryKey: key });
  return (
    <Stack as="section" gap={2} aria-label="Pools">
      <h2>Pools</h2>
      <P tone="muted">
        The first worker that connects under a name makes the pool of that name. Its owner lets the keys of others
        connect too: they get the runs of the pool, with their tokens and secrets.
      </P>
      <Loaded query={pools} rows={2}>
        {(list) =>
          list.length === 0 ? (
            <P tone="dim">None.</P>
          ) : (
            <DataTable
              aria-label="Pools of workers"
              items={list}
              keyOf={({ name }) => name}
              columns={(column) => [
                column('Pool', { medium: true }, ({ name }) => visibleText(name)),
                column('Owner', { width: 230 }, ({ owner }) => <Person profile={owner} />),
                column('Others who connect', { width: 280 }, (pool) => <Connectors pool={pool} refresh={refresh} />),
                column('Made', { width: 108 }, ({ created_at }) => <Ago time={created_at} />),
                column('Actions', { width: 200, spoken: true }, (pool) => (
                  <PoolButtons pool={pool} allow={() => setAllowing(pool)} refresh={refresh} />
                )),
              ]}
            />
          )
        }
      </Loaded>
      <Suspense>
        {allowing && <AllowDialog pool={allowing} refresh={refresh} close={() => setAllowing(undefined)} />}
      </Suspense>
    </Stack>
  );
}

interface PoolProps {
  readonly pool: WorkerPool;
  readonly refresh: () => Promise<unknown>;
}

/** Returns the role needed to change a pool. An owner can change the own pools, and an administrator can change all pools. */
function useNeeds({ owner }: WorkerPool): Role {
  const { person } = useSession();
  const isAdministrator = useMay('admin');
  return isAdministrator || owner.uid !== person.uid ? 'admin' : 'member';
}

function Connectors({ pool, refresh }: PoolProps) {
  const client = useClient();
  const needs = useNeeds(pool);
  if (pool.connectors.length === 0) return <Text tone="dim">nobody</Text>;
  return (
    <Text whole>
      {pool.connectors.map(({ principal }) => (
        <Row as="span" key={principal.uid}>
          <Text grow cut>
            {nameOf(principal)}
          </Text>
          <AskButton
            needs={needs}
            kind="ghost"
            small
            label={`End the right of ${nameOf(principal)} to connect to ${visibleText(pool.name)}`}
            question={{
              title: `End the right of ${nameOf(principal)} to connect to ${pool.name}?`,
              text: 'Connections that use it end at once.',
              action: 'End the right',
              run: async () => {
                const params = { poolName: pool.name, principalUid: principal.uid };
                await client.removeWorkerPoolConnector({ params });
                await refresh();
              },
            }}
          >
            End…
          </AskButton>
        </Row>
      ))}
    </Text>
  );
}

function PoolButtons({ pool, allow, refresh }: PoolProps & { allow: () => void }) {
  const client = useClient();
  const needs = useNeeds(pool);
  const { name } = pool;
  const shown = visibleText(name);
  return (
    <Row as="span">
      <RoleButton needs={needs} small label={`Allow somebody to connect to ${shown}`} run={allow}>
        Allow…
      </RoleButton>
      <AskButton
        needs={needs}
        kind="danger"
        small
        label={`Delete the pool ${shown}`}
        question={{
          title: `Delete the pool ${name}?`,
          text: 'Its connections end at once. The next worker that connects under this name makes the pool anew, and owns it.',
          action: 'Delete the pool',
          run: async () => {
            await client.deleteWorkerPool({ params: { poolName: name } });
            await refresh();
          },
        }}
      >
        Delete…
      </AskButton>
    </Row>
  );
}

/** Lets the keys of a person or an agent identity connect to a pool. */
function AllowDialog({ pool, refresh, close }: PoolProps & { close: () => void }) {
  const client = useClient();
  const members = useMembers();
  const identities = useIdentities();
  const has = new Set([pool.owner.uid, ...pool.connectors.map(({ principal }) => principal.uid)]);
  const people = (members.data ?? [])
    .filter(({ role, user }) => role !== 'viewer' && !has.has(user.uid))
    .map(({ user }) => [user.uid, nameOf(user)] as const);
  const agents = (identities.data ?? [])
    .filter(({ uid }) => !has.has(uid))
    .map(({ uid, name }) => [uid, `${visibleText(name)} (agent)`] as const);
  return (
    <FormDialog
      title={`Who may connect to ${visibleText(pool.name)}?`}
      action="Allow"
      close={close}
      send={async (data) => {
        await client.addWorkerPoolConnector({
          params: { poolName: pool.name, principalUid: String(data.get('principalUid')) },
        });
        await refresh();
      }}
    >
      <SelectField
        label="Person or agent"
        path="principalUid"
        required
        options={[...people, ...agents]}
        hint="Workers with a key of this person or agent get the runs of the pool, with their tokens and secrets."
      />
    </FormDialog>
  );
}
