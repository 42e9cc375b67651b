import { z } from 'zod';
import { NonBlank, Text, Timestamp } from './primitives.ts';
import { Scope, UserProfile } from './profiles.ts';
import { RunState } from './states.ts';

/** Name of a repository or of its owner: not a path, and not only dots. */
const RepositoryName = z
  .string()
  .regex(/^(?!\.+$)[A-Za-z0-9_.-]{1,100}$/, { error: 'must be 1 to 100 characters of [A-Za-z0-9_.-], not only dots' });

/** A repository on the code host. */
export const Repository = z
  .object({
    owner: RepositoryName,
    repo: RepositoryName,
  })
  .meta({ id: 'Repository' });
export type Repository = z.infer<typeof Repository>;

/** What is in a sandbox before the agent begins. */
export const EnvironmentConfig = z
  .looseObject({
    name: NonBlank.optional(),
    description: Text.nullable().optional(),
    docker_image: Text.optional(),
    github_repos: z.array(Repository).max(20).optional(),
    setup_commands: z.array(NonBlank).max(50).optional(),
    failure_session_retention_minutes: z.number().min(0).max(60).optional().meta({
      description: 'How long the sandbox of a failed setup waits for follow-ups, default 10; 0: it ends at once',
    }),
  })
  .meta({ id: 'EnvironmentConfig' });
export type EnvironmentConfig = z.infer<typeof EnvironmentConfig>;

/** The run that was last created in an environment, in short. */
export const EnvironmentRun = z
  .object({
    id: z.string(),
    title: z.string(),
    state: RunState,
    created_at: Timestamp,
    updated_at: Timestamp,
    started_at: Timestamp.optional(),
  })
  .meta({ id: 'EnvironmentRun' });

/** A cloud environment. */
export const Environment = z
  .object({
    uid: z.string(),
    config: EnvironmentConfig,
    last_updated: Timestamp,
    setup_failed: z
      .boolean()
      .meta({ description: 'True if the latest run in the environment failed before its agent could begin' }),
    last_task_run_timestamp: Timestamp.optional(),
    last_task_created: EnvironmentRun.optional(),
    scope: Scope.optional(),
    creator: UserProfile.optional(),
    last_editor: UserProfile.optional().meta({
      description: 'Person who last replaced the configuration; at first the creator',
    }),
  })
  .meta({ id: 'Environment' });
export type Environment = z.infer<typeof Environment>;

/** What a list of environments is sorted by. */
export const EnvironmentSortField = z
  .enum(['name', 'last_updated'])
  .meta({ id: 'EnvironmentSortField', description: 'What a list of environments is sorted by' });

export const ListEnvironmentsResponse = z
  .object({
    environments: z.array(Environment),
  })
  .meta({ id: 'ListEnvironmentsResponse' });

/** The configuration of an environment, with a name. */
const NamedEnvironmentConfig = EnvironmentConfig.extend({
  name: NonBlank.max(200),
}).meta({ id: 'NamedEnvironmentConfig' });

/** Body of the requests that create or replace an environment. The configuration must have a name. */
export const CreateEnvironmentRequest = z
  .object({
    config: NamedEnvironmentConfig,
  })
  .meta({ id: 'CreateEnvironmentRequest' });
export type CreateEnvironmentRequest = z.infer<typeof CreateEnvironmentRequest>;
