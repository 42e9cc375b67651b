import { z } from 'zod';
import { EnvironmentNetwork } from '../egress/network.ts';
import { maxProtectedBranches, maxServices } from '../limits.ts';
import { WaitingAfterChange } from '../runs/acceptances.ts';
import { SandboxVariables } from '../runs/sandbox-variables.ts';
import { RunState } from '../runs/states.ts';
import { SecretReferences } from '../secrets/secrets.ts';
import { NonBlank, Text, Timestamp } from '../wire/primitives.ts';
import { Scope, UserProfile } from '../wire/profiles.ts';
import { GithubTools } from './github-tools.ts';
import { meaningOf, type ProviderTool, providerTools } from './provider-tool-names.ts';
import {
  EnvironmentRepository,
  folderInWorkspace,
  haveOwnFolders,
  maxRepositories,
  NamedRepository,
} from './repositories.ts';
import { EnvironmentServices } from './services.ts';

/** Pattern of the characters that a branch name or a wildcard pattern may have. */
const branchPattern = /^[!-9;->@-Z\]_-}\u00a1-\ud7ff\ue000-\uffff]{1,200}$/u;

/** Branches to which no run may push. An entry is a name or a pattern with `*`. */
const ProtectedBranches = z
  .array(
    z.string().regex(branchPattern, {
      error: 'must be the name of a branch, a pattern with *, or HEAD for the default branch, at most 200 characters',
    }),
  )
  .max(maxProtectedBranches)
  .meta({
    id: 'ProtectedBranches',
    description: `Branches that runs cannot push to, at most ${maxProtectedBranches}: names, or patterns in which \`*\` stands for any characters. \`HEAD\` is the default branch of each repository. Absent: \`HEAD\` and each \`ref\` of the repositories. Empty: none is protected. \`["*"]\`: runs push nothing. Branches that hold the definition of a factory are always protected`,
  });

/** Limits of the sandboxes of an environment. The minimum of each limit is also the minimum of the worker's setting for this limit. */
export const EnvironmentLimits = z
  .object({
    memory_mb: z.int().min(128).max(1_048_576).optional().describe('Megabytes of memory'),
    processes: z.int().min(16).max(100_000).optional().describe('Processes and threads'),
    disk_mb: z.int().min(16).max(10_485_760).optional().describe('Megabytes of workspace and home together'),
  })
  .meta({
    id: 'EnvironmentLimits',
    description:
      "Limits of a sandbox, below the worker's limits, which are never exceeded. A worker of another program may ignore them",
  });
export type EnvironmentLimits = z.infer<typeof EnvironmentLimits>;

const ProviderToolName = z.enum(providerTools as [ProviderTool, ...ProviderTool[]]).meta({
  id: 'ProviderTool',
  description: `Actions of a model provider outside of the sandbox: ${providerTools.map((name) => `\`${name}\` ${meaningOf(name)}`).join('; ')}`,
});

/** Provider tools that the runs of an environment may use. */
const ProviderTools = z
  .array(ProviderToolName)
  .max(providerTools.length)
  .describe(
    'What model providers may do outside of the sandbox on behalf of runs. Absent or empty: nothing, and such requests get 403. It reaches the internet even where `network` allows no host, and its price counts',
  );

/** The content of a sandbox before the agent begins. */
export const EnvironmentConfig = z
  .looseObject({
    name: NonBlank.optional().describe('Name of the environment'),
    description: Text.nullable().optional().describe('What the environment is for'),
    docker_image: Text.optional().describe(
      'Container image of the sandbox, such as `node:24`. Runs wait for a worker with RUNYARD_SANDBOX=docker, and keep the image that the environment had when they were created',
    ),
    system: z
      .enum(['debian'])
      .optional()
      .describe(
        "`debian`: each sandbox has its own Debian, in which setup commands and the agent install packages (`apt-get install`), and a run gets what the setup of an earlier run has installed. Needs a worker with RUNYARD_SANDBOX=bubblewrap, and the preset `apt` of `network`. Absent: sandboxes have the worker's programs, which they cannot change. Not together with `docker_image`",
      ),
    github_repos: z
      .array(EnvironmentRepository)
      .max(maxRepositories)
      .optional()
      .describe(`Repositories to clone into the workspace, at most ${maxRepositories}`),
    protected_branches: ProtectedBranches.optional(),
    setup_commands: z
      .array(NonBlank)
      .max(50)
      .optional()
      .describe(
        'Shell commands to run in the workspace before the agent begins, in their order, at most 50; the first that fails ends the run',
      ),
    services: EnvironmentServices.optional().describe(
      `Programs beside the agent, such as a database, at most ${maxServices}. They start one after another when the setup has ended, and end with the sandbox. They get no secrets. A worker with RUNYARD_SANDBOX=none refuses them; services with \`image\` need RUNYARD_SANDBOX=docker or kubernetes`,
    ),
    variables: SandboxVariables.optional().describe(
      'Environment variables of setup commands and of the agent, at most 100, each at most 32,768 characters. Everyone in the team can read them: no secrets',
    ),
    working_directory: z
      .string()
      .max(500)
      .regex(folderInWorkspace, {
        error: 'must be a path relative to the workspace, without .., at most 500 characters',
      })
      .optional()
      .describe(
        'Folder in which the agent works, relative to the workspace, such as the name of a repository; absent: the workspace. Setup commands run in the workspace. If it does not exist after them, the run fails',
      ),
    secrets: SecretReferences.optional().describe(
      'Secrets of the team for runs in the environment. Each run gets those that it has the right to; `withheld` of the run names the others. A run may replace one by a secret of its own in the same variable',
    ),
    limits: EnvironmentLimits.optional().describe(
      "Limits of its sandboxes, below the worker's limits. The timeline event `worker_container_ready` of a run has the limits that apply",
    ),
    network: EnvironmentNetwork.optional(),
    provider_tools: ProviderTools.optional(),
    github_tools: GithubTools.optional(),
    failure_session_retention_minutes: z.number().min(0).max(60).nullable().optional().meta({
      description:
        'How long the sandbox of a failed setup waits for follow-ups, default 10; 0 or null: it ends at once',
    }),
  })
  .meta({ id: 'EnvironmentConfig', description: 'The content of a sandbox before the agent begins' });
export type EnvironmentConfig = z.infer<typeof EnvironmentConfig>;

/** Summary of the run that was created last in an environment. */
export const EnvironmentRun = z
  .object({
    id: z.string().describe('Id of the run'),
    title: z.string().describe('Title of the run'),
    state: RunState,
    created_at: Timestamp.describe('When the run was created, RFC 3339 in UTC'),
    updated_at: Timestamp.describe('When the run last changed, RFC 3339 in UTC'),
    started_at: Timestamp.optional().describe(
      'When its agent began to work on the prompt, RFC 3339 in UTC; absent: not yet',
    ),
  })
  .meta({ id: 'EnvironmentRun', description: 'The run that was last created in an environment' });

/** A cloud environment. */
export const Environment = z
  .object({
    uid: z.string().describe('Id of the environment, 22 characters of [A-Za-z0-9]'),
    config: EnvironmentConfig,
    last_updated: Timestamp.describe('When the configuration last changed, RFC 3339 in UTC'),
    setup_failed: z
      .boolean()
      .meta({ description: 'True if the latest run in the environment failed before its agent could begin' }),
    last_task_run_timestamp: Timestamp.optional().describe(
      'When an agent last began to work in the environment, RFC 3339 in UTC; absent: no agent has worked in it',
    ),
    last_task_created: EnvironmentRun.optional(),
    is_link_shared: z
      .literal(true)
      .optional()
      .describe('True: every person with the uid may use the environment; absent: it is not shared by its link'),
    scope: Scope.optional(),
    creator: UserProfile.optional(),
    waiting: WaitingAfterChange.optional(),
    last_editor: UserProfile.optional().meta({
      description: 'Person who replaced the configuration last; at first its creator',
    }),
  })
  .meta({
    id: 'Environment',
    description: 'An environment: everything that a sandbox contains before the agent begins',
  });
export type Environment = z.infer<typeof Environment>;

/** Answer to the requests that begin and end the sharing of an environment by a link. */
export const EnvironmentSharing = z
  .object({
    uid: z.string().describe('Id of the environment'),
    is_link_shared: z.boolean().describe('True: every person who has the uid may use the environment'),
    url: z.string().optional().describe('Link: address at which people open the environment with their own keys'),
  })
  .meta({ id: 'EnvironmentSharing', description: 'Whether an environment is shared by its link' });
export type EnvironmentSharing = z.infer<typeof EnvironmentSharing>;

/** The orders of a list of environments. */
export const EnvironmentSortField = z
  .enum(['name', 'last_updated'])
  .meta({ id: 'EnvironmentSortField', description: 'The order of a list of environments' });

export const ListEnvironmentsResponse = z
  .object({
    environments: z.array(Environment).describe('Environments of the team'),
  })
  .meta({ id: 'ListEnvironmentsResponse', description: 'Environments of the team' });

/** The configuration of an environment, with a name. */
export const NamedEnvironmentConfig = EnvironmentConfig.extend({
  name: NonBlank.max(200).describe('Name of the environment, at most 200 characters'),
  github_repos: z
    .array(NamedRepository)
    .max(maxRepositories)
    .refine(haveOwnFolders, { error: 'each `path` must be a folder of its own, not inside of another one' })
    .optional()
    .describe(`Repositories to clone into the workspace, at most ${maxRepositories}`),
  providers: z
    .record(z.string(), z.unknown())
    .refine((providers) => Object.keys(providers).length === 0, {
      error: 'must be absent or empty: this service gives sandboxes no credentials of cloud providers',
    })
    .meta({ maxProperties: 0 })
    .optional()
    .describe('Credentials of cloud providers. This service gives no such credentials to sandboxes: absent or empty'),
}).meta({ id: 'NamedEnvironmentConfig', description: 'The content of a sandbox before the agent begins, with a name' });

/** Body of the requests that create or replace an environment. The configuration must have a name. */
export const CreateEnvironmentRequest = z
  .object({
    config: NamedEnvironmentConfig.describe('The whole configuration: members that are left out are removed'),
  })
  .meta({ id: 'CreateEnvironmentRequest', description: 'An environment to create, or its new configuration' });
export type CreateEnvironmentRequest = z.infer<typeof CreateEnvironmentRequest>;
