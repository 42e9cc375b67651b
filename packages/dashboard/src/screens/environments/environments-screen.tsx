import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { Pad, Text } from '../../parts/blocks.tsx';
import { Empty, SkeletonRows } from '../../parts/empty.tsx';
import { Find, hasWords, NothingFound } from '../../parts/find.tsx';
import { StateBadge } from '../../parts/icon.tsx';
import { useKeys } from '../../parts/keys.ts';
import { look } from '../../parts/look.ts';
import { Problem } from '../../parts/problem.tsx';
import { RoleLink } from '../../parts/role-button.tsx';
import { Cell, Table } from '../../parts/table.tsx';
import { Ago } from '../../parts/time.tsx';
import { EnvironmentForm } from './environment-form.tsx';

const route = getRouteApi('/shell/environments');

/** Lists the environments. Shows for each environment whether its setup works. */
export function EnvironmentsScreen() {
  const client = useClient();
  const { team } = useSession();
  const navigate = useNavigate();
  const may = useMay('member');
  const create = () => may && void navigate({ to: '/environments', search: { new: 'true' } });
  useKeys([{ key: 'c', does: 'New environment', run: create }]);
  const [words, setWords] = useState('');
  const isNew = oneOf(route.useSearch({ select: (search) => search.new })) !== undefined;
  const { data, error, refetch } = useQuery({
    queryKey: ['environments', team.uid],
    queryFn: async () => (await client.listEnvironments({})).environments,
  });
  const shown = (data ?? []).filter(({ uid, config }) => hasWords(words, config.name ?? uid));
  return (
    <Page
      title="Environments"
      actions={
        <>
          <Find words={words} change={setWords} />
          <RoleLink needs="member" kind="primary" icon="plus" to="/environments" search={{ new: 'true' }}>
            New environment
          </RoleLink>
        </>
      }
    >
      {isNew && (
        <Pad>
          <EnvironmentForm close={() => void navigate({ to: '/environments', search: {} })} />
        </Pad>
      )}
      {error ? (
        <Pad>
          <Problem error={error} onRetry={() => void refetch()} />
        </Pad>
      ) : data === undefined ? (
        <SkeletonRows />
      ) : data.length === 0 && !isNew ? (
        <Empty
          title="No environment yet"
          command="echo '{&quot;config&quot;: {&quot;name&quot;: &quot;web&quot;}}' | bin/runyard environments create -"
        >
          An environment names the repositories to clone, the commands that set them up, and the hosts that a sandbox
          may reach.
        </Empty>
      ) : (
        <>
          <Table
            bare
            columns={[
              { name: 'Environment', width: 230 },
              { name: 'Repositories' },
              { name: 'Setup', width: 160 },
              { name: 'Latest run', width: 230 },
              { name: 'Changed', width: 120 },
            ]}
          >
            {shown.map(({ uid, config, setup_failed: failed, last_task_created: run, last_updated: changed }) => (
              <tr key={uid}>
                <td>
                  <Link className={look({ medium: true })} to="/environments/$uid" params={{ uid }}>
                    {visibleText(config.name ?? uid)}
                  </Link>
                </td>
                <Cell mono>
                  {visibleText((config.github_repos ?? []).map(({ owner, repo }) => `${owner}/${repo}`).join(', '))}
                </Cell>
                <td>
                  {failed ? (
                    <Text tone="bad">failed last time</Text>
                  ) : run ? (
                    <Text tone="good">works</Text>
                  ) : (
                    <Text tone="dim">not tried</Text>
                  )}
                </td>
                <td>
                  {run && (
                    <Link to="/runs/$runId" params={{ runId: run.id }} className={look({ row: true })}>
                      <StateBadge state={run.state} />
                      <Text cut>{visibleText(run.title)}</Text>
                    </Link>
                  )}
                </td>
                <td>
                  <Ago time={changed} />
                </td>
              </tr>
            ))}
          </Table>
          <NothingFound words={words} found={shown.length} />
        </>
      )}
    </Page>
  );
}
