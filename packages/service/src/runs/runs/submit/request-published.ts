/** Checks the members of a configuration that the public service defines and that this service has in another form, or not at all. */
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import { asksForSomething } from '@runyard/contract/wire/without-effect';
import type { Fault } from '../../../platform/fault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import { isUid } from '../../../team/access/teams/uid.ts';
import { listPools } from '../../../team/access/worker-pools/pools.ts';

/** Returns the member of a configuration that `runner_id` stands for. */
export const memberOfRunner = (runner: string): 'environment_id' | 'worker_host' =>
  isUid(runner) ? 'environment_id' : 'worker_host';

/**
 * Returns the configuration with `environment_id` or `worker_host` instead of what `runner_id` names. Keeps `runner_id`. Adds a fault if
 * there is no such pool, or if the configuration names both.
 */
export async function withRunner(
  db: Queryable,
  teamId: string,
  config: AmbientAgentConfig,
  faults: Fault[],
): Promise<AmbientAgentConfig> {
  const { runner_id: runner } = config;
  if (!runner) return config;
  const member = memberOfRunner(runner);
  const present = config[member];
  if (present === runner) return config;
  const refuse = (message: string) => {
    faults.push({ path: 'config.runner_id', message });
    return config;
  };
  if (present) return refuse(`excludes ${member}, which names something else; keep one of the two`);
  if (member === 'worker_host' && !(await listPools(db, teamId)).some(({ name }) => name === runner))
    return refuse(
      'is neither the UID of an environment nor the name of a pool of self-hosted workers. List them with GET /agent/environments and GET /worker-pools',
    );
  return { ...config, [member]: runner };
}

/** Names of the members that sign the program of a harness in. */
const authSecrets = { claude: 'claude_auth_secret_name', codex: 'codex_auth_secret_name' } as const;

/** The configuration of a run, and who creates and executes the run. */
interface PublishedMembers {
  readonly config: AmbientAgentConfig;
  readonly creator: RunActor;
  readonly executor: RunActor;
}

/** Adds a fault for each member that would change rights, money or the model of the run, and that this service cannot obey. */
export function checkPublishedMembers({ config, creator, executor }: PublishedMembers, faults: Fault[]): void {
  const { credential_strategy, inference_providers, harness_auth_secrets, harness } = config;
  const isSame = creator.kind === executor.kind && creator.uid === executor.uid;
  if (credential_strategy === 'CREATOR' && !isSame)
    faults.push({
      path: 'config.credential_strategy',
      message:
        'CREATOR is not supported for a run with another executor than its creator; leave it out, or use EXECUTOR',
    });
  for (const [name, provider] of Object.entries(inference_providers ?? {})) {
    const { disabled, ...wanted } = Object(provider) as Readonly<Record<string, unknown>>;
    if (disabled !== true && asksForSomething(wanted))
      faults.push({
        path: `config.inference_providers.${name}`,
        message:
          'is not supported: runs use the models of this service (GET /agent/models). Leave it out, or set disabled',
      });
  }
  const type = harness?.type ?? '';
  const secret = Object.hasOwn(authSecrets, type) ? authSecrets[type as keyof typeof authSecrets] : undefined;
  if (secret !== undefined && harness_auth_secrets?.[secret])
    faults.push({
      path: `config.harness_auth_secrets.${secret}`,
      message: `is not supported: the harness ${type} uses its model through this service, with the service's credentials. Leave it out`,
    });
}
