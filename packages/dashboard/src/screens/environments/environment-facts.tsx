import type { Environment } from '@runyard/contract/environments/environments';
import { usualProtectedBranches } from '@runyard/contract/environments/protected-branches';
import { visibleText } from '@runyard/contract/wire/visible';
import { Fact, Facts, Text } from '../../parts/blocks.tsx';
import { Ago } from '../../parts/time.tsx';
import styles from './environments.module.css';

type Config = Environment['config'];

/** Shows what an environment has, and what its runs may reach. */
export function EnvironmentFacts({ environment: { config, last_updated, last_editor } }: { environment: Environment }) {
  const repositories = config.github_repos ?? [];
  return (
    <Facts far>
      <Fact name="What it is for">{config.description && visibleText(config.description)}</Fact>
      <Fact name="Repositories">
        {repositories.length > 0 && (
          <Text mono>{visibleText(repositories.map(({ owner, repo }) => `${owner}/${repo}`).join(', '))}</Text>
        )}
      </Fact>
      <Fact name="Setup">
        <SetupCommands commands={config.setup_commands ?? []} />
      </Fact>
      <Fact name="Services">
        <Lines of={(config.services ?? []).map(serviceLine)} />
      </Fact>
      <Fact name="Container image">{config.docker_image && <code>{visibleText(config.docker_image)}</code>}</Fact>
      <Fact name="System">{config.system}</Fact>
      <Fact name="Folder">{config.working_directory && <code>{visibleText(config.working_directory)}</code>}</Fact>
      <Fact name="May reach">
        <Reachable network={config.network} />
      </Fact>
      <Fact name="Variables">
        <Lines of={Object.entries(config.variables ?? {}).map(([name, value]) => `${name}=${value}`)} />
      </Fact>
      <Fact name="Secrets">
        <Lines of={(config.secrets ?? []).map(secretLine)} />
      </Fact>
      <Fact name="Limits">
        <Lines
          of={Object.entries(config.limits ?? {}).map(([name, value]) => `${name.replace('_mb', ', MB')}: ${value}`)}
        />
      </Fact>
      <Fact name="Protected">
        <Text mono>
          {visibleText((config.protected_branches ?? usualProtectedBranches(repositories)).join(', ')) ||
            'no branch: runs may push to all'}
        </Text>
      </Fact>
      <Fact name="Provider tools">
        {(config.provider_tools ?? []).map((name) => name.replaceAll('_', ' ')).join(', ')}
      </Fact>
      <Fact name="GitHub tools">
        {Object.entries(config.github_tools ?? {})
          .map(([name, most]) => `${name.replaceAll('_', ' ')} ×${most}`)
          .join(', ')}
      </Fact>
      <Fact name="Failed setup">
        {config.failure_session_retention_minutes !== undefined &&
          `its sandbox waits ${config.failure_session_retention_minutes} min for messages`}
      </Fact>
      <Fact name="Last changed">
        <Ago time={last_updated} /> {last_editor && `by ${visibleText(last_editor.display_name ?? last_editor.uid)}`}
      </Fact>
    </Facts>
  );
}

function SetupCommands({ commands }: { commands: readonly string[] }) {
  if (commands.length === 0) return null;
  return (
    <Text as="ol" mono className={styles.setup}>
      {commands.map((command, index) => (
        <li key={index}>{visibleText(command)}</li>
      ))}
    </Text>
  );
}

function Reachable({ network }: { network: Config['network'] }) {
  const hosts = [...(network?.presets ?? []).map((name) => `registries of ${name}`), ...(network?.allowed_hosts ?? [])];
  if (hosts.length === 0) return 'only the gateway of the service: models, git and managed MCP servers';
  return <Text mono>{visibleText(hosts.join(', '))}</Text>;
}

function serviceLine({ name, image, command, port, ready }: NonNullable<Config['services']>[number]): string {
  const start = [image && `image ${image}`, command].filter(Boolean).join(', ');
  return `${name}${port === undefined ? '' : ` on port ${port}`}: ${start}${ready === undefined ? '' : `, ready after ${ready}`}`;
}

function secretLine({ name, variable = name, as, phase }: NonNullable<Config['secrets']>[number]): string {
  const place = variable === name ? '' : ` in ${variable}`;
  return `${name}${place}${as === 'file' ? ', as a file' : ''}${phase === 'setup' ? ', only for the setup' : ''}`;
}

/** Shows short texts, one on each line. */
const Lines = ({ of: texts }: { of: readonly string[] }) => (
  <Text mono className={styles.lines}>
    {texts.length === 0 ? 'none' : visibleText(texts.join('\n'))}
  </Text>
);
