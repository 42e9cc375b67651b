/** Handles the defaults of an agent identity: values for members of a run that the run's request does not set. */

import { builtinHarness } from '@runyard/contract/agent/harness-presets/builtin';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { AgentIdentity, UpdateAgentIdentityRequest } from '@runyard/contract/team/identities';
import { asksForSomething } from '@runyard/contract/wire/without-effect';
import type { Fault } from '../../../platform/fault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';

/** Defaults for runs, with the members of a run's configuration. */
export type IdentityConfig = Pick<
  AmbientAgentConfig,
  | 'base_prompt'
  | 'harness'
  | 'mcp_servers'
  | 'output_schema'
  | 'checks'
  | 'check_attempts'
  | 'worker_host'
  | 'credential_strategy'
  | 'runner_id'
> & {
  /** Names of those secrets of the identity that only setup commands get. */
  readonly setup_secrets?: readonly string[];
};

/** Members that runs of an identity get if their requests omit them. */
export interface Defaults {
  readonly base_model: string | null;
  readonly environment_id: string | null;
  readonly skills: string[];
  readonly secrets: string[];
  readonly config: IdentityConfig;
}

/** `isForbidden`: the default names an object that the team may not use, so the answer is 403. */
export type DefaultFault = Fault & { readonly isForbidden?: true };

/**
 * Returns the faults of an identity's defaults, each with the path of the wrong member. The list is empty if runs of the identity can be
 * created.
 */
export type CheckDefaults = (tx: Queryable, teamId: string, defaults: Defaults) => Promise<DefaultFault[]>;

/** Members of an answer that published clients require, although this service does not support them. */
export const membersWithoutEffect = {
  memory: { attached_stores: [], auto_memory: { enabled: false } },
} satisfies Partial<AgentIdentity>;

export const textOrNone = (value: string | null | undefined): string | null => value || null;

export const given = <T>(value: T | null | undefined, before: T): T => value ?? before;
/** Published clients send null to leave a text unchanged, and '' to remove it. */
export const givenText = (value: string | null | undefined, before: string | null): string | null =>
  (value ?? before) || null;

/** Returns those members of an answer that show a stored configuration. */
export const defaultsOf = ({
  base_prompt,
  harness,
  mcp_servers,
  output_schema,
  checks,
  check_attempts,
  worker_host,
  ...config
}: IdentityConfig) => ({
  ...(base_prompt === undefined ? {} : { prompt: base_prompt }),
  ...(harness === undefined ? {} : { harness }),
  ...(harness?.type === undefined ? {} : { base_harness: harness.type }),
  ...(mcp_servers === undefined ? {} : { mcp_servers }),
  ...(output_schema === undefined ? {} : { output_schema }),
  ...(checks === undefined ? {} : { checks }),
  ...(check_attempts === undefined ? {} : { check_attempts }),
  ...(worker_host === undefined ? {} : { worker_host }),
  ...(config.credential_strategy ? { credential_strategy: config.credential_strategy } : {}),
  default_runner_uid: config.runner_id ?? '',
});

/** Returns the secrets of an identity as answers and configurations of runs name them. */
export const secretsOfIdentity = ({
  secrets,
  config,
}: Pick<Defaults, 'secrets' | 'config'>): AgentIdentity['secrets'] =>
  secrets.map((name) => ({ name, ...(config.setup_secrets?.includes(name) ? { phase: 'setup' as const } : {}) }));

type RequestedConfig = Pick<
  UpdateAgentIdentityRequest,
  | 'prompt'
  | 'harness'
  | 'base_harness'
  | 'mcp_servers'
  | 'output_schema'
  | 'checks'
  | 'check_attempts'
  | 'worker_host'
  | 'secrets'
  | 'credential_strategy'
  | 'default_runner_uid'
  | 'inference_providers'
  | 'harness_auth_secrets'
>;

/**
 * Returns the configuration after the change that a request asks for. Members that the request omits or sets to null do not change; an
 * empty value removes a member.
 */
export function configAfter(request: RequestedConfig, before: IdentityConfig): IdentityConfig {
  const { base_harness: type } = request;
  const named = type == null ? undefined : type === '' ? {} : { type };
  const harness = request.harness ?? named ?? before.harness ?? {};
  const servers = request.mcp_servers ?? before.mcp_servers ?? {};
  const schema = request.output_schema ?? before.output_schema ?? {};
  const checks = request.checks ?? before.checks ?? [];
  const attempts = request.check_attempts ?? before.check_attempts;
  const prompt = givenText(request.prompt, before.base_prompt ?? null);
  const host = givenText(request.worker_host?.trim(), before.worker_host ?? null);
  const runner = givenText(request.default_runner_uid?.trim(), before.runner_id ?? null);
  const strategy = request.credential_strategy ?? before.credential_strategy;
  const ofSetup = request.secrets?.filter(({ phase }) => phase === 'setup').map(({ name }) => name);
  const setupSecrets = ofSetup ?? before.setup_secrets ?? [];
  return {
    ...(prompt === null ? {} : { base_prompt: prompt }),
    ...(Object.keys(harness).length === 0 ? {} : { harness }),
    ...(Object.keys(servers).length === 0 ? {} : { mcp_servers: servers }),
    ...(Object.keys(schema).length === 0 ? {} : { output_schema: schema }),
    ...(checks.length === 0 ? {} : { checks }),
    ...(attempts === undefined ? {} : { check_attempts: attempts }),
    ...(host === null ? {} : { worker_host: host }),
    ...(runner === null ? {} : { runner_id: runner }),
    ...(strategy ? { credential_strategy: strategy } : {}),
    ...(setupSecrets.length === 0 ? {} : { setup_secrets: setupSecrets }),
  };
}

/**
 * Returns a fault if a request names two different harnesses in two members, and for each member that would change the model of the runs in
 * a way that this service cannot obey.
 */
export function requestFaults({ harness, base_harness: type, ...request }: RequestedConfig): DefaultFault[] {
  const faults: DefaultFault[] = [];
  if (type && harness && type !== (harness.type ?? builtinHarness))
    faults.push({ path: 'base_harness', message: 'must be harness.type, or be left out' });
  for (const path of ['inference_providers', 'harness_auth_secrets'] as const)
    if (asksForSomething(request[path]))
      faults.push({ path, message: 'is not supported: runs use the models of this service. Leave it out' });
  return faults;
}
