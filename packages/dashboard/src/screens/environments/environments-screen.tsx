import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useClient, useSession } from '../../api/session.ts';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { Empty, SkeletonRows } from '../../parts/empty.tsx';
import { Find, hasWords, NothingFound } from '../../parts/find.tsx';
import { Icon, StateBadge } from '../../parts/icon.tsx';
import { Problem } from '../../parts/problem.tsx';
import { RoleLink } from '../../parts/role-button.tsx';
import { Ago } from '../../parts/time.tsx';
import { EnvironmentForm } from './environment-form.tsx';

const route = getRouteApi('/shell/environments');

/** Lists the environments. Shows for each environment whether its setup works. */
export function EnvironmentsScreen() {
  const client = useClient();
  const { team } = useSession();
  const navigate = useNavigate();
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
          <RoleLink needs="member" className="btn pri" to="/environments" search={{ new: 'true' }}>
            <Icon name="plus" small />
            New environment
          </RoleLink>
        </>
      }
    >
      {isNew && (
        <div className="pad">
          <EnvironmentForm close={() => void navigate({ to: '/environments', search: {} })} />
        </div>
      )}
      {error ? (
        <div className="pad">
          <Problem error={error} onRetry={() => void refetch()} />
        </div>
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
          <table className="tbl">
            <thead>
              <tr>
                <th className="w230">Environment</th>
                <th>Repositories</th>
                <th className="w160">Setup</th>
                <th className="w230">Latest run</th>
                <th className="w120">Changed</th>
              </tr>
            </thead>
            <tbody>
              {shown.map(({ uid, config, setup_failed: failed, last_task_created: run, last_updated: changed }) => (
                <tr key={uid}>
                  <td>
                    <Link className="md" to="/environments/$uid" params={{ uid }}>
                      {visibleText(config.name ?? uid)}
                    </Link>
                  </td>
                  <td className="mono">
                    {visibleText((config.github_repos ?? []).map(({ owner, repo }) => `${owner}/${repo}`).join(', '))}
                  </td>
                  <td>
                    {failed ? (
                      <span className="badc">failed last time</span>
                    ) : run ? (
                      <span className="okc">works</span>
                    ) : (
                      <span className="dim">not tried</span>
                    )}
                  </td>
                  <td>
                    {run && (
                      <Link to="/runs/$runId" params={{ runId: run.id }} className="row">
                        <StateBadge state={run.state} />
                        <span className="cut">{visibleText(run.title)}</span>
                      </Link>
                    )}
                  </td>
                  <td>
                    <Ago time={changed} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          <NothingFound words={words} found={shown.length} />
        </>
      )}
    </Page>
  );
}
