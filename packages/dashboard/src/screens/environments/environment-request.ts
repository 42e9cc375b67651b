/** Makes the configuration of an environment from the fields of its form. */
import { networkPresetNames } from '@runyard/contract/egress/presets';
import type { CreateEnvironmentRequest, Environment } from '@runyard/contract/environments/environments';
import type { GithubToolName } from '@runyard/contract/environments/github-tools';
import { usualProtectedBranches } from '@runyard/contract/environments/protected-branches';
import { providerTools } from '@runyard/contract/environments/provider-tool-names';
import type { EnvironmentService } from '@runyard/contract/environments/services';
import type { SecretReference } from '@runyard/contract/secrets/secrets';
import { textOf } from '../../parts/form.tsx';
import { type Pair, pairsOf } from '../../parts/pairs.tsx';
import { namedSecrets } from './secret-rows.tsx';
import { filledServices } from './service-rows.tsx';

type Config = CreateEnvironmentRequest['config'];

/** Returns the texts that are not blank, unchanged. A text may have several lines, because it may be a setup command. */
const filled = (texts: readonly string[]): string[] => texts.filter((text) => text.trim() !== '');

/** Limits of sandboxes with their labels. */
export const limits = [
  ['memory_mb', 'Memory, MB'],
  ['disk_mb', 'Disk, MB'],
  ['processes', 'Processes'],
] as const;

/** Tools with which a run writes on GitHub, with their labels. */
export const githubTools: Readonly<Record<GithubToolName, string>> = {
  comment: 'Comments',
  review: 'Reviews',
  add_labels: 'Additions of labels',
  request_reviewers: 'Requests for reviews',
  resolve_thread: 'Resolved threads',
};

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

/** The rows of the form. Its other fields are in the data of the form. */
export interface EnvironmentDraft {
  readonly repos: readonly string[];
  readonly setup: readonly string[];
  readonly services: readonly EnvironmentService[];
  readonly hosts: readonly string[];
  readonly variables: readonly Pair[];
  readonly secrets: readonly SecretReference[];
  readonly branches: readonly string[];
}

/** Returns the rows of the form for an environment, or for a new environment. */
export function draftOf(config: Environment['config'] | undefined): EnvironmentDraft {
  return {
    repos: config?.github_repos?.map(textOfRepository) ?? (config ? [] : ['']),
    setup: config?.setup_commands ?? (config ? [] : ['']),
    services: config?.services ?? [],
    hosts: config?.network?.allowed_hosts ?? [],
    variables: Object.entries(config?.variables ?? {}).map(([name, value]) => ({ name, value })),
    secrets: config?.secrets ?? [],
    branches: config?.protected_branches ?? usualProtectedBranches(config?.github_repos ?? []),
  };
}

/** Returns the configuration for the request. Members of `config` that the form does not show stay as they were. */
export function configFrom(
  data: FormData,
  draft: EnvironmentDraft,
  config: Environment['config'] | undefined,
): CreateEnvironmentRequest['config'] {
  const {
    docker_image: _image,
    system: _system,
    working_directory: _folder,
    description: _text,
    failure_session_retention_minutes: _minutes,
    protected_branches: branchesBefore,
    limits: limitsBefore,
    github_tools: _tools,
    network,
    ...others
  } = config ?? {};
  const presets = networkPresetNames.filter((name) => data.getAll('presets').includes(name));
  const allowed = filled(draft.hosts).map((host) => host.trim());
  const allProtected = filled(draft.branches).map((branch) => branch.trim());
  const isUsual =
    branchesBefore === undefined && allProtected.join() === usualProtectedBranches(config?.github_repos ?? []).join();
  const limited = Object.assign({}, ...limits.map(([name]) => member(name, numberOf(data, name))));
  const tools: NonNullable<Config['github_tools']> = Object.assign(
    {},
    ...Object.keys(githubTools).map((name) => member(name, numberOf(data, `github_tools.${name}`))),
  );
  return {
    ...others,
    name: String(data.get('name')).trim(),
    ...member(
      'github_repos',
      unlessNone(
        filled(draft.repos).map((text) => repositoryOf(text, config?.github_repos ?? [])),
        config?.github_repos,
      ),
    ),
    ...member('setup_commands', unlessNone(filled(draft.setup), config?.setup_commands)),
    ...member('services', unlessNone(filledServices(draft.services), config?.services)),
    ...member('description', textOf(data, 'description')),
    ...member('docker_image', textOf(data, 'docker_image')),
    ...(data.get('system') === 'debian' ? { system: 'debian' as const } : {}),
    ...member('working_directory', textOf(data, 'working_directory')),
    ...member('variables', unlessNone(pairsOf(draft.variables), config?.variables)),
    ...member('secrets', unlessNone(namedSecrets(draft.secrets), config?.secrets)),
    ...member('limits', unlessNone(limited, limitsBefore)),
    ...(isUsual ? {} : { protected_branches: allProtected }),
    ...member(
      'provider_tools',
      unlessNone(
        providerTools.filter((name) => data.getAll('provider_tools').includes(name)),
        config?.provider_tools,
      ),
    ),
    ...member('github_tools', unlessNone(tools, undefined)),
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
}
