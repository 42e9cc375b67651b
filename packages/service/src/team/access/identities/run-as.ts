/** Decides which person or identity executes a run. */
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { RunAgentRequest } from '@runyard/contract/runs/run-request';
import { type Fault, notUsable } from '../../../platform/fault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  text,
  texts,
} from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../actor.ts';
import type { ContentRevision } from '../contents/content.ts';
import { isSuspended } from '../keys/key.ts';
import { isUid } from '../teams/uid.ts';
import { type Defaults, type IdentityConfig, secretsOfIdentity } from './defaults.ts';

const readRunner = defineStatement({
  name: 'read_agent_identity_to_run_as',
  text: `
    SELECT base_model, environment_id, skills, secrets, config, on_behalf_of_enabled, revision FROM agent_identities WHERE team_id = $1 AND uid = $2`,
  row: {
    base_model: nullable(text()),
    environment_id: nullable(text()),
    skills: texts,
    secrets: texts,
    config: json<IdentityConfig>(),
    on_behalf_of_enabled: boolean,
    revision: integer,
  },
});

const readPerson = defineStatement({
  name: 'read_person_to_run_for',
  // Refuses viewers and suspended people as executors, because they may not create runs.
  text: `
    SELECT FROM team_members m JOIN users u ON u.id = m.user_id
    WHERE m.team_id = $1 AND u.uid = $2 AND m.role <> 'viewer' AND NOT ${isSuspended('u.id')}`,
  row: {},
});

interface Runner {
  readonly executor: RunActor;
  readonly config: AmbientAgentConfig;
  /** A list with the agent identity of the run; empty if the run has none. */
  readonly contents: readonly ContentRevision[];
  /** Names of the secrets that the identity gives only to setup commands. */
  readonly setupSecrets: readonly string[];
}

/** The executor of a run, and the configuration completed with the identity's defaults; or the reason why the request is refused. */
export type RunAsOutcome =
  | ({ readonly kind: 'ok' } & Runner)
  /** 400 */
  | { readonly kind: 'invalid'; readonly fault: Fault }
  /** 403 `not_authorized` */
  | { readonly kind: 'forbidden'; readonly detail: string; readonly fault?: Fault };

/** Returns whether a configuration names an environment, if the runner is one, or else a worker. */
const namesPlace = (config: AmbientAgentConfig, runner: string): boolean =>
  (isUid(runner) ? config.environment_id : config.worker_host) !== undefined;

/**
 * Returns the configuration, completed with the identity's defaults for members that the request does not set, and with the secrets and
 * MCP servers of the identity.
 */
function withDefaults(
  { config = {}, skill }: Pick<RunAgentRequest, 'config' | 'skill'>,
  identity: Defaults,
): AmbientAgentConfig {
  const { base_model: model, environment_id: environment, skills } = identity;
  const { harness, mcp_servers, setup_secrets: ofSetup = [], runner_id: runner, ...others } = identity.config;
  const namesModel = config.model_id !== undefined || config.harness?.model_id !== undefined;
  const namesSkill = skill !== undefined || config.skill_spec !== undefined || config.skills !== undefined;
  // A request cannot give the agent a secret that the identity gives only to setup commands.
  const own = (config.secrets ?? []).map((secret) =>
    ofSetup.includes(secret.name) ? { ...secret, phase: 'setup' as const } : secret,
  );
  const added = secretsOfIdentity(identity).filter(({ name }) => !own.some((each) => each.name === name));
  const { model_id: _model, ...harnessAlone } = harness ?? {};
  return {
    ...others,
    ...config,
    ...(!runner || config.runner_id || namesPlace(config, runner) ? {} : { runner_id: runner }),
    ...(harness === undefined || config.harness ? {} : { harness: namesModel ? harnessAlone : harness }),
    ...(mcp_servers === undefined ? {} : { mcp_servers: { ...mcp_servers, ...config.mcp_servers } }),
    ...(model === null || namesModel ? {} : { model_id: model }),
    ...(environment === null || config.environment_id !== undefined ? {} : { environment_id: environment }),
    ...(skills.length === 0 || namesSkill ? {} : { skills }),
    ...(own.length + added.length === 0 ? {} : { secrets: [...own, ...added] }),
  };
}

/** Returns the executor and the configuration of a child run. The child has the same executor as its parent. */
export const runAsParent = (
  { creator }: { readonly creator: RunActor },
  { config = {} }: Pick<RunAgentRequest, 'config'>,
): RunAsOutcome => ({
  kind: 'ok',
  executor: { kind: creator.kind, uid: creator.uid },
  config,
  contents: [],
  setupSecrets: [],
});

/**
 * Decides which person or identity executes the run of a request. A run of an agent key always executes as the identity of the key,
 * because an agent could otherwise take the rights of another identity. `on_behalf_of` must name a person of the team, and is allowed only
 * for an agent key whose identity acts for users.
 */
export async function resolveRunAs(
  db: Queryable,
  { teamId, creator }: { readonly teamId: string; readonly creator: RunActor },
  request: Pick<RunAgentRequest, 'agent_identity_uid' | 'on_behalf_of' | 'config' | 'skill'>,
): Promise<RunAsOutcome> {
  const { agent_identity_uid: wanted, on_behalf_of: person, config = {} } = request;
  const isAgent = creator.kind === 'service_account';
  if (isAgent && wanted !== undefined && wanted !== creator.uid)
    return { kind: 'forbidden', detail: 'agent_identity_uid: an agent key runs only as its own identity.' };
  const uid = isAgent ? creator.uid : wanted;
  const [identity] = uid === undefined ? [] : await db.query(readRunner, [teamId, uid]);
  if (wanted !== undefined && !identity) {
    return notUsable('agent_identity_uid', 'agent identity', 'GET /agent/identities');
  }
  if (person !== undefined) {
    const member = (['approvals_from', 'followups_from'] as const).find((name) => config[name] !== undefined);
    if (member !== undefined)
      return {
        kind: 'forbidden',
        detail: `config.${member}: an agent key cannot decide whose answers and follow-ups the run of a person takes; leave it out.`,
      };
    if (!isAgent || !identity?.on_behalf_of_enabled) {
      const detail =
        'on_behalf_of: only agent keys whose identity has on_behalf_of_enabled may create runs for a person.';
      return { kind: 'forbidden', detail };
    }
    if ((await db.query(readPerson, [teamId, person])).length === 0) {
      const message = 'the team has no person with this uid who may create runs';
      return { kind: 'invalid', fault: { path: 'on_behalf_of', message } };
    }
  }
  const executor: RunActor =
    person !== undefined
      ? { kind: 'user', uid: person }
      : uid === undefined
        ? { kind: creator.kind, uid: creator.uid }
        : { kind: 'service_account', uid };
  if (uid === undefined || !identity) return { kind: 'ok', executor, config, contents: [], setupSecrets: [] };
  const contents = [{ kind: 'agent_identity' as const, uid, revision: identity.revision }];
  const { setup_secrets: setupSecrets = [] } = identity.config;
  return { kind: 'ok', executor, config: withDefaults(request, identity), contents, setupSecrets };
}
