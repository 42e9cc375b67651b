import type { UserProfile } from '@runyard/contract/wire/profiles';
import { visibleText } from '@runyard/contract/wire/visible';
import type { WorkerPool } from '@runyard/contract/workers/worker-pools';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { useIdentities, useMembers } from '../../api/lists.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { P, Row, Stack, Text } from '../../parts/blocks.tsx';
import { SelectField } from '../../parts/form.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { nameOf, Person } from '../../parts/person.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Cell, Table } from '../../parts/table.tsx';
import { Ago } from '../../parts/time.tsx';

const ConfirmDialog = lazy(async () => ({ default: (await import('../../parts/dialog.tsx')).ConfirmDialog }));
const FormDialog = lazy(async () => ({ default: (await import('../../parts/form-dialog.tsx')).FormDialog }));

type Open =
  | { readonly kind: 'allow' | 'delete'; readonly pool: WorkerPool }
  | { readonly kind: 'deny'; readonly pool: WorkerPool; readonly principal: UserProfile };

/** Shows the names under which workers of the team connect, and whose keys may connect under each name. */
export function WorkerPools() {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const [open, setOpen] = useState<Open | undefined>();
  const key = ['worker-pools', team.uid];
  const pools = useQuery({ queryKey: key, queryFn: async () => (await client.listWorkerPools({})).pools });
  const refresh = async () => await queries.invalidateQueries({ queryKey: key });
  const close = () => setOpen(undefined);
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
            <Table
              aria-label="Pools of workers"
              columns={[
                { name: 'Pool' },
                { name: 'Owner', width: 230 },
                { name: 'Others who connect', width: 280 },
                { name: 'Made', width: 108 },
                { name: 'Actions', width: 200, spoken: true },
              ]}
            >
              {list.map((pool) => (
                <Pool key={pool.name} pool={pool} open={setOpen} />
              ))}
            </Table>
          )
        }
      </Loaded>
      <Suspense>
        {open?.kind === 'allow' && <AllowDialog pool={open.pool} refresh={refresh} close={close} />}
        {open?.kind === 'deny' && (
          <ConfirmDialog
            title={`End the right of ${nameOf(open.principal)} to connect to ${open.pool.name}?`}
            action="End the right"
            run={async () => {
              await client.removeWorkerPoolConnector({
                params: { poolName: open.pool.name, principalUid: open.principal.uid },
              });
              await refresh();
            }}
            close={close}
          >
            Connections that use it end at once.
          </ConfirmDialog>
        )}
        {open?.kind === 'delete' && (
          <ConfirmDialog
            title={`Delete the pool ${open.pool.name}?`}
            action="Delete the pool"
            run={async () => {
              await client.deleteWorkerPool({ params: { poolName: open.pool.name } });
              await refresh();
            }}
            close={close}
          >
            Its connections end at once. The next worker that connects under this name makes the pool anew, and owns it.
          </ConfirmDialog>
        )}
      </Suspense>
    </Stack>
  );
}

function Pool({ pool, open }: { pool: WorkerPool; open: (open: Open) => void }) {
  const { person } = useSession();
  const isAdministrator = useMay('admin');
  // An owner can change the own pools, and an administrator can change all pools.
  const needs = isAdministrator || pool.owner.uid !== person.uid ? 'admin' : 'member';
  const name = visibleText(pool.name);
  return (
    <tr>
      <Cell medium>{name}</Cell>
      <td>
        <Person profile={pool.owner} />
      </td>
      <td>
        {pool.connectors.length === 0 ? (
          <Text tone="dim">nobody</Text>
        ) : (
          <Text whole>
            {pool.connectors.map(({ principal }) => (
              <Row as="span" key={principal.uid}>
                <Text grow cut>
                  {nameOf(principal)}
                </Text>
                <RoleButton
                  needs={needs}
                  kind="ghost"
                  small
                  label={`End the right of ${nameOf(principal)} to connect to ${name}`}
                  run={() => open({ kind: 'deny', pool, principal })}
                >
                  End…
                </RoleButton>
              </Row>
            ))}
          </Text>
        )}
      </td>
      <td>
        <Ago time={pool.created_at} />
      </td>
      <td>
        <Row as="span">
          <RoleButton
            needs={needs}
            small
            label={`Allow somebody to connect to ${name}`}
            run={() => open({ kind: 'allow', pool })}
          >
            Allow…
          </RoleButton>
          <RoleButton
            needs={needs}
            kind="danger"
            small
            label={`Delete the pool ${name}`}
            run={() => open({ kind: 'delete', pool })}
          >
            Delete…
          </RoleButton>
        </Row>
      </td>
    </tr>
  );
}

/** Lets the keys of a person or an agent identity connect to a pool. */
function AllowDialog({
  pool,
  refresh,
  close,
}: {
  pool: WorkerPool;
  refresh: () => Promise<unknown>;
  close: () => void;
}) {
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
