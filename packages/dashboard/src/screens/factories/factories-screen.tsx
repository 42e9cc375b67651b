import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { useFactories, useFactoryProblems } from '../../api/lists.ts';
import { useClient, useSession } from '../../api/session.ts';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { Card, Row, Stack, Text } from '../../parts/blocks.tsx';
import { Input } from '../../parts/controls.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { Empty, SkeletonRows } from '../../parts/empty.tsx';
import { Find, hasWords, NothingFound } from '../../parts/find.tsx';
import { Form, type OnceHeaders, textOf } from '../../parts/form.tsx';
import { countText } from '../../parts/format.ts';
import { look } from '../../parts/look.ts';
import { Problem } from '../../parts/problem.tsx';
import { QueryTabs } from '../../parts/query-tabs.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Ago } from '../../parts/time.tsx';

const TeamThings = lazy(async () => ({ default: (await import('./team-tables.tsx')).TeamThings }));
const TeamDeliveries = lazy(async () => ({ default: (await import('./team-deliveries.tsx')).TeamDeliveries }));

const tabs = ['webhooks', 'automations', 'deliveries'] as const;

/** Lists the factories. A factory is a group of webhooks and automations. */
export function FactoriesScreen() {
  const [words, setWords] = useState('');
  const { data, error, refetch } = useFactories();
  const shown = (data ?? []).filter(({ name }) => hasWords(words, name));
  const problems = useFactoryProblems();
  const wanted = oneOf(useSearch({ strict: false, select: (search) => search.tab }));
  const tab = tabs.find((each) => each === wanted);
  const bar = (
    <QueryTabs
      label="Parts of all factories"
      tabs={[undefined, ...tabs].map((each) => ({
        name: each === undefined ? 'Factories' : each.slice(0, 1).toUpperCase() + each.slice(1),
        search: { tab: each },
        isCurrent: each === tab,
      }))}
    />
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
            <DataTable
              inCard
              items={shown}
              keyOf={({ uid }) => uid}
              columns={(column) => [
                column('Factory', { width: 230 }, ({ uid, name }) => (
                  <Link className={look({ medium: true })} to="/factories/$factoryUid" params={{ factoryUid: uid }}>
                    {visibleText(name)}
                  </Link>
                )),
                column('Purpose', { tone: 'muted' }, ({ description }) => visibleText(description ?? '')),
                column('Problems', { width: 180 }, ({ uid }) =>
                  problems.has(uid) ? (
                    <Text tone="wait">{`${countText(problems.get(uid) ?? 0, 'automation')} cannot fire`}</Text>
                  ) : (
                    <Text tone="dim">none</Text>
                  ),
                ),
                column('Changed', { width: 140 }, ({ updated_at: changed }) => <Ago time={changed} />),
              ]}
            />
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
  const create = async (data: FormData, headers: OnceHeaders) => {
    const { uid } = await client.createFactory({
      body: { name: textOf(data, 'name') ?? '' },
      headers: { ...headers },
    });
    await queries.invalidateQueries({ queryKey: ['factories', team.uid] });
    await navigate({ to: '/factories/$factoryUid', params: { factoryUid: uid } });
  };
  return (
    <Form id="new-factory" send={create}>
      <Row>
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
    </Form>
  );
}
