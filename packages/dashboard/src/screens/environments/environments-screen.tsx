import type { Environment } from '@runyard/contract/environments/environments';
import { visibleText } from '@runyard/contract/wire/visible';
import { Link } from '@tanstack/react-router';
import { useEnvironments } from '../../api/lists.ts';
import { ListScreen } from '../../frame/list-screen.tsx';
import { Text } from '../../parts/blocks.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { Empty } from '../../parts/empty.tsx';
import { StateBadge } from '../../parts/icon.tsx';
import { look } from '../../parts/look.ts';
import { Ago } from '../../parts/time.tsx';
import { EnvironmentForm } from './environment-form.tsx';

const nameOf = ({ uid, config }: Environment): string => config.name ?? uid;

/** Lists the environments. Shows for each environment whether its setup works. */
export function EnvironmentsScreen() {
  return (
    <ListScreen
      title="Environments"
      what="environment"
      to="/environments"
      query={useEnvironments()}
      nameOf={nameOf}
      form={(close) => <EnvironmentForm close={close} />}
      empty={
        <Empty
          title="No environment yet"
          command="echo '{&quot;config&quot;: {&quot;name&quot;: &quot;web&quot;}}' | bin/runyard environments create -"
        >
          An environment names the repositories to clone, the commands that set them up, and the hosts that a sandbox
          may reach.
        </Empty>
      }
    >
      {(found) => (
        <DataTable
          bare
          items={found}
          keyOf={({ uid }) => uid}
          columns={(column) => [
            column('Environment', { width: 230 }, EnvironmentLink),
            column('Repositories', { mono: true }, ({ config: { github_repos: repositories = [] } }) =>
              visibleText(repositories.map(({ owner, repo }) => `${owner}/${repo}`).join(', ')),
            ),
            column('Setup', { width: 160 }, SetupState),
            column('Latest run', { width: 230 }, LatestRun),
            column('Changed', { width: 120 }, ({ last_updated: changed }) => <Ago time={changed} />),
          ]}
        />
      )}
    </ListScreen>
  );
}

const EnvironmentLink = (environment: Environment) => (
  <Link className={look({ medium: true })} to="/environments/$uid" params={{ uid: environment.uid }}>
    {visibleText(nameOf(environment))}
  </Link>
);

function SetupState({ setup_failed: failed, last_task_created: run }: Environment) {
  if (failed) return <Text tone="bad">failed last time</Text>;
  return run ? <Text tone="good">works</Text> : <Text tone="dim">not tried</Text>;
}

const LatestRun = ({ last_task_created: run }: Environment) =>
  run && (
    <Link to="/runs/$runId" params={{ runId: run.id }} className={look({ row: true })}>
      <StateBadge state={run.state} />
      <Text cut>{visibleText(run.title)}</Text>
    </Link>
  );
