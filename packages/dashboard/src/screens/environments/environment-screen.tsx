import { usualProtectedBranches } from '@runyard/contract/environments/protected-branches';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { statusOf } from '../../api/problem.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { NotFound } from '../../frame/not-found.tsx';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { SkeletonRows } from '../../parts/empty.tsx';
import { Fact } from '../../parts/fact.tsx';
import { Icon, StateBadge } from '../../parts/icon.tsx';
import { useKeys } from '../../parts/keys.ts';
import { MoreMenu } from '../../parts/more-menu.tsx';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Ago } from '../../parts/time.tsx';
import { EnvironmentForm } from './environment-form.tsx';
import { EnvironmentGuests } from './environment-guests.tsx';
import styles from './environments.module.css';

const ConfirmDialog = lazy(async () => ({ default: (await import('../../parts/dialog.tsx')).ConfirmDialog }));

const route = getRouteApi('/shell/environments/$uid');

const Crumb = () => (
  <Link to="/environments" className="hide-m">
    Environments
  </Link>
);

/** The prompt of a run that only tests the setup. The run ends soon after the setup. */
const testPrompt = 'The setup of this environment worked.\n\n```sh\npwd; ls\n```\n';

/** Shows one environment: its content, the result of its setup, its network, and its users. */
export function EnvironmentScreen() {
  const { uid } = route.useParams();
  const isEditing = oneOf(route.useSearch({ select: (search) => search.edit })) !== undefined;
  const client = useClient();
  const { team } = useSession();
  const may = useMay('member');
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [isDeleting, setDeleting] = useState(false);
  const { error, attempt } = useAttempts();
  const params = { uid };
  const environment = useQuery({
    queryKey: ['environment', uid],
    queryFn: async () => await client.getEnvironment({ params }),
  });
  const runs = useQuery({
    queryKey: ['environment', uid, 'runs'],
    queryFn: async () => (await client.listRuns({ query: { environment_id: uid, view: 'summary', limit: 10 } })).runs,
    refetchInterval: 10_000,
  });
  const mayManage = useMay('admin');
  const edit = (isOpen: boolean) =>
    void navigate({ to: '/environments/$uid', params, search: isOpen ? { edit: 'true' } : {} });
  const test = async () => {
    await attempt(async () => {
      const run = await client.createRun({
        body: {
          prompt: testPrompt,
          title: `Test of the setup of ${environment.data?.config.name ?? uid}`,
          config: { environment_id: uid, model_id: 'runbook', refresh_environment: true, idle_timeout_minutes: 0 },
        },
        headers: { 'x-oz-api-source': 'WEB_APP' },
      });
      await navigate({ to: '/runs/$runId', params: { runId: run.run_id } });
    });
  };
  useKeys([
    { key: 'e', does: 'Edit the environment', run: () => may && edit(true) },
    { key: 't', does: 'Test the setup', run: () => may && void test() },
  ]);
  const { data } = environment;
  if (statusOf(environment.error) === 404)
    return (
      <Page title="Environment" crumbs={<Crumb />}>
        <NotFound what="environment" />
      </Page>
    );
  if (data === undefined)
    return (
      <Page title="Environment" crumbs={<Crumb />}>
        {environment.error ? <Problem error={environment.error} /> : <SkeletonRows />}
      </Page>
    );
  const { config } = data;
  const reachable = [
    ...(config.network?.presets ?? []).map((name) => `registries of ${name}`),
    ...(config.network?.allowed_hosts ?? []),
  ];
  return (
    <Page
      title={config.name ?? uid}
      crumbs={<Crumb />}
      actions={
        <>
          <RoleButton needs="member" run={() => void test()}>
            <Icon name="play" small />
            Test the setup <kbd>T</kbd>
          </RoleButton>
          <RoleButton needs="member" run={() => edit(!isEditing)}>
            Edit <kbd>E</kbd>
          </RoleButton>
          <RoleButton needs="member" className="btn dan" run={() => setDeleting(true)}>
            Delete…
          </RoleButton>
          <MoreMenu path={`/agent/environments/${data.uid}`} />
        </>
      }
    >
      <div className="wide">
        <Problem error={error} />
        {isEditing && <EnvironmentForm environment={data} close={() => edit(false)} />}
        {data.setup_failed && (
          <div className="note bad">
            <Icon name="warn" />
            <span>
              The latest run failed before its agent could begin. Open it below: it shows the step that failed.
            </span>
          </div>
        )}
        <dl className="kv far">
          <Fact name="What it is for">{config.description && visibleText(config.description)}</Fact>
          <Fact name="Repositories">
            {(config.github_repos ?? []).length > 0 && (
              <span className="mono">
                {visibleText((config.github_repos ?? []).map(({ owner, repo }) => `${owner}/${repo}`).join(', '))}
              </span>
            )}
          </Fact>
          <Fact name="Setup">
            {(config.setup_commands ?? []).length > 0 && (
              <ol className={`mono ${styles.setup}`}>
                {config.setup_commands?.map((command, index) => (
                  <li key={index}>{visibleText(command)}</li>
                ))}
              </ol>
            )}
          </Fact>
          <Fact name="Services">
            <Lines
              of={(config.services ?? []).map(
                ({ name, image, command, port, ready }) =>
                  `${name}${port === undefined ? '' : ` on port ${port}`}: ${[image && `image ${image}`, command].filter(Boolean).join(', ')}${ready === undefined ? '' : `, ready after ${ready}`}`,
              )}
            />
          </Fact>
          <Fact name="Container image">{config.docker_image && <code>{visibleText(config.docker_image)}</code>}</Fact>
          <Fact name="System">{config.system}</Fact>
          <Fact name="Folder">{config.working_directory && <code>{visibleText(config.working_directory)}</code>}</Fact>
          <Fact name="May reach">
            {reachable.length === 0 ? (
              'only the gateway of the service: models, git and managed MCP servers'
            ) : (
              <span className="mono">{visibleText(reachable.join(', '))}</span>
            )}
          </Fact>
          <Fact name="Variables">
            <Lines of={Object.entries(config.variables ?? {}).map(([name, value]) => `${name}=${value}`)} />
          </Fact>
          <Fact name="Secrets">
            <Lines
              of={(config.secrets ?? []).map(
                ({ name, variable = name, as, phase }) =>
                  `${name}${variable === name ? '' : ` in ${variable}`}${as === 'file' ? ', as a file' : ''}${phase === 'setup' ? ', only for the setup' : ''}`,
              )}
            />
          </Fact>
          <Fact name="Limits">
            <Lines
              of={Object.entries(config.limits ?? {}).map(
                ([name, value]) => `${name.replace('_mb', ', MB')}: ${value}`,
              )}
            />
          </Fact>
          <Fact name="Protected">
            <span className="mono">
              {visibleText(
                (config.protected_branches ?? usualProtectedBranches(config.github_repos ?? [])).join(', '),
              ) || 'no branch: runs may push to all'}
            </span>
          </Fact>
          <Fact name="Provider tools">
            {(config.provider_tools ?? []).map((name) => name.replaceAll('_', ' ')).join(', ')}
          </Fact>
          <Fact name="Failed setup">
            {config.failure_session_retention_minutes !== undefined &&
              `its sandbox waits ${config.failure_session_retention_minutes} min for messages`}
          </Fact>
          <Fact name="Last changed">
            <Ago time={data.last_updated} />{' '}
            {data.last_editor && `by ${visibleText(data.last_editor.display_name ?? data.last_editor.uid)}`}
          </Fact>
        </dl>
        <section className="stack s2">
          <h2 className="row">
            Latest runs
            <Link className="link small right" to="/runs" search={{ environment_id: uid }}>
              All its runs
            </Link>
          </h2>
          {runs.data?.length === 0 && <p className="dim">None yet. Test the setup to see whether it works.</p>}
          {runs.data !== undefined && runs.data.length > 0 && (
            <div className="card">
              <table className="tbl in-card">
                <tbody>
                  {runs.data.map((run) => (
                    <tr key={run.run_id}>
                      <td className="w120">
                        <StateBadge state={run.state} />
                      </td>
                      <td>
                        <Link to="/runs/$runId" params={{ runId: run.run_id }}>
                          {visibleText(run.title)}
                        </Link>
                      </td>
                      <td className="num w120">
                        <Ago time={run.updated_at} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </section>
        {mayManage && data.scope?.uid === team.uid && <EnvironmentGuests environment={data} />}
      </div>
      <Suspense>
        {isDeleting && (
          <ConfirmDialog
            title={`Delete ${config.name ?? uid}?`}
            action="Delete the environment"
            run={async () => {
              await client.deleteEnvironment({ params });
              await queries.invalidateQueries({ queryKey: ['environments', team.uid] });
              await navigate({ to: '/environments' });
            }}
            close={() => setDeleting(false)}
          >
            Schedules and automations that name it start no more runs. Runs that exist stay.
          </ConfirmDialog>
        )}
      </Suspense>
    </Page>
  );
}

/** Shows short texts, one on each line. */
const Lines = ({ of: texts }: { of: readonly string[] }) => (
  <span className={`mono ${styles.lines}`}>{texts.length === 0 ? 'none' : visibleText(texts.join('\n'))}</span>
);
