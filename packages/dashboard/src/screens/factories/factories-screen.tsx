import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type FormEvent, lazy, Suspense, useRef, useState } from 'react';
import { useFactoryProblems } from '../../api/lists.ts';
import { isPassing } from '../../api/problem.ts';
import { useClient, useSession } from '../../api/session.ts';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { Card, Row, Stack, Tabs, Text } from '../../parts/blocks.tsx';
import { Input } from '../../parts/controls.tsx';
import { Empty, SkeletonRows } from '../../parts/empty.tsx';
import { Find, hasWords, NothingFound } from '../../parts/find.tsx';
import { countText } from '../../parts/format.ts';
import { look } from '../../parts/look.ts';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Cell, Table } from '../../parts/table.tsx';
import { Ago } from '../../parts/time.tsx';

const TeamThings = lazy(async () => ({ default: (await import('./team-tables.tsx')).TeamThings }));
const TeamDeliveries = lazy(async () => ({ default: (await import('./team-deliveries.tsx')).TeamDeliveries }));

const tabs = ['webhooks', 'automations', 'deliveries'] as const;

/** Lists the factories. A factory is a group of webhooks and automations. */
export function FactoriesScreen() {
  const client = useClient();
  const { team } = useSession();
  const [words, setWords] = useState('');
  const { data, error, refetch } = useQuery({
    queryKey: ['factories', team.uid],
    queryFn: async () => (await client.listFactories({ query: { limit: 100 } })).factories,
  });
  const shown = (data ?? []).filter(({ name }) => hasWords(words, name));
  const problems = useFactoryProblems();
  const wanted = oneOf(useSearch({ strict: false, select: (search) => search.tab }));
  const tab = tabs.find((each) => each === wanted);
  const bar = (
    <Tabs aria-label="Parts of all factories">
      {[undefined, ...tabs].map((each) => (
        <Link
          key={each ?? ''}
          to="/factories"
          search={each === undefined ? {} : { tab: each }}
          activeOptions={{ exact: true }}
          aria-current={each === tab ? 'page' : undefined}
        >
          {each === undefined ? 'Factories' : each.slice(0, 1).toUpperCase() + each.slice(1)}
        </Link>
      ))}
    </Tabs>
  );
  if (tab !== undefined)
    return (
      <Page title="Factories" tabs={bar}>
        <Suspense fallback={<SkeletonRows />}>
          {tab === 'deliveries' ? <TeamDeliveries /> : <TeamThings kind={tab} />}
        </Suspense>
      </Page>
    );
  return (
    <Page title="Factories" tabs={bar} actions={<Find words={words} change={setWords} />}>
      <Stack pad>
        <Problem error={error} onRetry={() => void refetch()} />
        <NewFactory />
        {data === undefined && !error && <SkeletonRows count={4} />}
        {data?.length === 0 && (
          <Empty title="No factory yet" command="bin/runyard factory create Billing">
            A factory holds webhooks, which receive events of Stripe, GitHub, Sentry or your own systems, and
            automations, which start runs of its agents for those that match.
          </Empty>
        )}
        {data !== undefined && data.length > 0 && (
          <Card>
            <Table
              inCard
              columns={[
                { name: 'Factory', width: 230 },
                { name: 'Purpose' },
                { name: 'Problems', width: 180 },
                { name: 'Changed', width: 140 },
              ]}
            >
              {shown.map(({ uid, name, description, updated_at: changed }) => (
                <tr key={uid}>
                  <td>
                    <Link className={look({ medium: true })} to="/factories/$factoryUid" params={{ factoryUid: uid }}>
                      {visibleText(name)}
                    </Link>
                  </td>
                  <Cell tone="muted">{visibleText(description ?? '')}</Cell>
                  <Cell style={{ width: 180 }}>
                    {problems.has(uid) ? (
                      <Text tone="wait">{`${countText(problems.get(uid) ?? 0, 'automation')} cannot fire`}</Text>
                    ) : (
                      <Text tone="dim">none</Text>
                    )}
                  </Cell>
                  <td>
                    <Ago time={changed} />
                  </td>
                </tr>
              ))}
            </Table>
            <NothingFound words={words} found={shown.length} />
          </Card>
        )}
      </Stack>
    </Page>
  );
}

function NewFactory() {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [error, setError] = useState<unknown>();
  const key = useRef(crypto.randomUUID());
  const create = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const name = String(new FormData(event.currentTarget).get('name') ?? '').trim();
    setError(undefined);
    try {
      const { uid } = await client.createFactory({ body: { name }, headers: { 'idempotency-key': key.current } });
      await queries.invalidateQueries({ queryKey: ['factories', team.uid] });
      await navigate({ to: '/factories/$factoryUid', params: { factoryUid: uid } });
    } catch (failure) {
      if (!isPassing(failure)) key.current = crypto.randomUUID();
      setError(failure);
    }
  };
  return (
    <>
      <Row as="form" onSubmit={(event) => void create(event)}>
        <Input
          style={{ width: 280 }}
          name="name"
          aria-label="Name of the new factory"
          placeholder="Name"
          required
          maxLength={100}
        />
        <RoleButton needs="member" kind="primary" icon="plus">
          New factory
        </RoleButton>
      </Row>
      <Problem error={error} />
    </>
  );
}
