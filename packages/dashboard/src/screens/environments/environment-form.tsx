import { networkPresetNames } from '@runyard/contract/egress/presets';
import type { CreateEnvironmentRequest, Environment } from '@runyard/contract/environments/environments';
import { usualProtectedBranches } from '@runyard/contract/environments/protected-branches';
import { meaningOf, providerTools } from '@runyard/contract/environments/provider-tool-names';
import type { EnvironmentService } from '@runyard/contract/environments/services';
import type { SecretReference } from '@runyard/contract/secrets/secrets';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useClient, useSession } from '../../api/session.ts';
import { CheckGroup } from '../../parts/check-group.tsx';
import { tellWaiting } from '../../parts/executor-field.tsx';
import { Form, type OnceHeaders, TextField, textOf } from '../../parts/form.tsx';
import { type Pair, Pairs, pairsOf } from '../../parts/pairs.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Rows } from '../../parts/rows.tsx';
import styles from './environments.module.css';
import { namedSecrets, SecretRows } from './secret-rows.tsx';
import { filledServices, ServiceRows } from './service-rows.tsx';

type Config = CreateEnvironmentRequest['config'];

/** Returns the texts that are not blank, unchanged. A text may have several lines, because it may be a setup command. */
const filled = (texts: readonly string[]): string[] => texts.filter((text) => text.trim() !== '');

/** Limits of sandboxes with their labels. */
const limits = [
  ['memory_mb', 'Memory, MB'],
  ['disk_mb', 'Disk, MB'],
  ['processes', 'Processes'],
] as const;

/** Returns the number in a field; undefined if the field is empty. */
function numberOf(data: FormData, name: string): number | undefined {
  const text = textOf(data, name);
  return text === undefined ? undefined : Number(text);
}

/** Returns `{ [name]: value }` if there is a value, and otherwise `{}`. */
const member = <N extends string, V>(name: N, value: V | undefined): { readonly [K in N]?: V } =>
  (value === undefined ? {} : { [name]: value }) as { readonly [K in N]?: V };

/**
 * Returns the value. Returns undefined if the value is empty and the configuration had no value before, so that the request does not
 * contain the member.
 */
const unlessNone = <V extends object>(value: V, before: unknown): V | undefined =>
  Object.keys(value).length === 0 && before === undefined ? undefined : value;

type Repositories = NonNullable<Environment['config']['github_repos']>;

const textOfRepository = ({ owner, repo, ref }: Repositories[number]): string =>
  `${owner}/${repo}${ref === undefined ? '' : `@${ref}`}`;

/** Reads `owner/repo`, `owner/repo@ref` or an address. The other members of a repository stay as they were. */
function repositoryOf(text: string, before: Repositories): NonNullable<Config['github_repos']>[number] {
  const given = text.trim();
  if (/^(?:[a-z]+:\/\/|git@)/.test(given)) return { url: given };
  const [, owner = given, repo = '', ref] = /^([^/]*)\/([^@]*)(?:@(.*))?$/.exec(given) ?? [];
  const same = before.filter((each) => each.owner === owner && each.repo === repo);
  const { ref: _ref, ...known } = same.find((each) => textOfRepository(each) === given) ?? same[0] ?? {};
  return { ...known, owner, repo, ...(ref === undefined ? {} : { ref }) };
}

/** Creates an environment, or changes the given environment. Does not change members that the form does not show. */
export function EnvironmentForm({ environment, close }: { environment?: Environment; close: () => void }) {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const config = environment?.config;
  const [isBusy, setBusy] = useState(false);
  const [repos, setRepos] = useState<readonly string[]>(
    config?.github_repos?.map(textOfRepository) ?? (config ? [] : ['']),
  );
  const [setup, setSetup] = useState<readonly string[]>(config?.setup_commands ?? (config ? [] : ['']));
  const [services, setServices] = useState<readonly EnvironmentService[]>(config?.services ?? []);
  const [hosts, setHosts] = useState<readonly string[]>(config?.network?.allowed_hosts ?? []);

  const [variables, setVariables] = useState<readonly Pair[]>(
    Object.entries(config?.variables ?? {}).map(([name, value]) => ({ name, value })),
  );
  const [secrets, setSecrets] = useState<readonly SecretReference[]>(config?.secrets ?? []);
  const usualBranches = usualProtectedBranches(config?.github_repos ?? []);
  const [branches, setBranches] = useState<readonly string[]>(config?.protected_branches ?? usualBranches);

  const send = async (data: FormData, headers: OnceHeaders) => {
    const {
      docker_image: _image,
      system: _system,
      working_directory: _folder,
      description: _text,
      failure_session_retention_minutes: _minutes,
      protected_branches: branchesBefore,
      limits: limitsBefore,
      network,
      ...others
    } = config ?? {};
    const presets = networkPresetNames.filter((name) => data.getAll('presets').includes(name));
    const allowed = filled(hosts).map((host) => host.trim());
    const allProtected = filled(branches).map((branch) => branch.trim());
    const isUsual = branchesBefore === undefined && allProtected.join() === usualBranches.join();
    const limited = Object.assign({}, ...limits.map(([name]) => member(name, numberOf(data, name))));
    const next: Config = {
      ...others,
      name: String(data.get('name')).trim(),
      ...member(
        'github_repos',
        unlessNone(
          filled(repos).map((text) => repositoryOf(text, config?.github_repos ?? [])),
          config?.github_repos,
        ),
      ),
      ...member('setup_commands', unlessNone(filled(setup), config?.setup_commands)),
      ...member('services', unlessNone(filledServices(services), config?.services)),
      ...member('description', textOf(data, 'description')),
      ...member('docker_image', textOf(data, 'docker_image')),
      ...(data.get('system') === 'debian' ? { system: 'debian' as const } : {}),
      ...member('working_directory', textOf(data, 'working_directory')),
      ...member('variables', unlessNone(pairsOf(variables), config?.variables)),
      ...member('secrets', unlessNone(namedSecrets(secrets), config?.secrets)),
      ...member('limits', unlessNone(limited, limitsBefore)),
      ...(isUsual ? {} : { protected_branches: allProtected }),
      ...member(
        'provider_tools',
        unlessNone(
          providerTools.filter((name) => data.getAll('provider_tools').includes(name)),
          config?.provider_tools,
        ),
      ),
      ...member('failure_session_retention_minutes', numberOf(data, 'failure_session_retention_minutes')),
      ...(allowed.length === 0 && presets.length === 0 && network === undefined
        ? {}
        : {
            network: {
              ...network,
              ...member('allowed_hosts', unlessNone(allowed, network?.allowed_hosts ?? undefined)),
              ...member('presets', unlessNone(presets, network?.presets ?? undefined)),
            },
          }),
    };
    const body = { config: next };
    const saved =
      environment === undefined
        ? await client.createEnvironment({ body, headers: { ...headers } })
        : await client.updateEnvironment({ params: { uid: environment.uid }, body });
    await queries.invalidateQueries({ queryKey: ['environments', team.uid] });
    await queries.invalidateQueries({ queryKey: ['environment', saved.uid] });
    if (environment === undefined) await navigate({ to: '/environments/$uid', params: { uid: saved.uid }, search: {} });
    else close();
    tellWaiting(saved.waiting);
  };
  return (
    <section className="card" aria-label={environment === undefined ? 'New environment' : 'Edit the environment'}>
      <div className="card-h">
        <h2>{environment === undefined ? 'New environment' : 'Edit'}</h2>
      </div>
      <Form id="environment-form" className="form" send={send} onBusy={setBusy}>
        <div className="two">
          <TextField label="Name" path="config.name" name="name" required maxLength={200} defaultValue={config?.name} />
          <TextField
            label="What it is for"
            path="config.description"
            name="description"
            defaultValue={config?.description ?? ''}
          />
        </div>
        <Rows
          legend="Repositories"
          what="repository"
          path="config.github_repos"
          values={repos}
          set={setRepos}
          placeholder="owner/repo@branch"
          hint="Cloned into the workspace before the setup. The branch, tag or commit after @ is optional. An address on the code host works too"
        />
        <Rows
          legend="Setup commands"
          what="command"
          path="config.setup_commands"
          values={setup}
          set={setSetup}
          lines={2}
          placeholder="npm ci"
          hint="Run in this order; the first that fails ends the run. One may have several lines"
        />
        <ServiceRows path="config.services" services={services} set={setServices} />
        <Pairs
          legend="Variables"
          what="variable"
          path="config.variables"
          pairs={variables}
          set={setVariables}
          hint="Of setup commands and the agent. Everyone in the team can read them: no secrets"
        />
        <SecretRows path="config.secrets" secrets={secrets} set={setSecrets} />
        <CheckGroup
          legend="System"
          name="system"
          path="config.system"
          options={[['debian', 'own Debian, in which setup commands install packages']]}
          chosen={config?.system === undefined ? [] : [config.system]}
        />
        <CheckGroup
          legend="Package managers whose public registries it may reach"
          name="presets"
          path="config.network.presets"
          options={networkPresetNames.map((name) => [name, name])}
          chosen={config?.network?.presets ?? []}
        />
        <Rows
          legend="Hosts that it may reach"
          what="host"
          path="config.network.allowed_hosts"
          values={hosts}
          set={setHosts}
          placeholder="api.example.com"
          hint="Without a port: 443 and 80. *.example.com is for all names below it"
        />
        <CheckGroup
          legend="What model providers may do outside of the sandbox"
          name="provider_tools"
          path="config.provider_tools"
          options={providerTools.map((name) => [name, `${name.replaceAll('_', ' ')}: ${meaningOf(name)}`])}
          chosen={config?.provider_tools ?? []}
        />
        <Rows
          legend="Branches that runs cannot push to"
          what="branch"
          path="config.protected_branches"
          values={branches}
          set={setBranches}
          placeholder="release/*"
          hint="HEAD is the default branch of each repository, * stands for any characters. Without a row, none is protected"
        />
        <div className={styles.three}>
          {limits.map(([name, words]) => (
            <TextField
              key={name}
              label={words}
              path={`config.limits.${name}`}
              name={name}
              type="number"
              placeholder="the worker's image"
              defaultValue={config?.limits?.[name]}
            />
          ))}
          <TextField
            label="Keep a failed setup, minutes"
            path="config.failure_session_retention_minutes"
            name="failure_session_retention_minutes"
            type="number"
            min={0}
            max={60}
            placeholder="10"
            defaultValue={config?.failure_session_retention_minutes}
            hint="For messages to its sandbox"
          />
        </div>
        <div className="two">
          <TextField
            label="Container image"
            path="config.docker_image"
            name="docker_image"
            className="mono"
            placeholder="node:24"
            defaultValue={config?.docker_image}
            hint="Runs wait for a worker with containers"
          />
          <TextField
            label="Folder in which the agent works"
            path="config.working_directory"
            name="working_directory"
            className="mono"
            placeholder="the workspace"
            defaultValue={config?.working_directory}
          />
        </div>
        <div className="row">
          <RoleButton needs="member" className="btn pri" disabled={isBusy}>
            {environment === undefined ? 'Create environment' : 'Save'}
          </RoleButton>
          <button type="button" className="btn" onClick={close}>
            Back
          </button>
        </div>
      </Form>
    </section>
  );
}
