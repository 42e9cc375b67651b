/** Starts a run for the agent of another run, which becomes its parent. */

import { isDeepStrictEqual } from 'node:util';
import { maxRunsInTree } from '@runyard/contract/limits';
import type { ChildRunRequest } from '@runyard/contract/runs/child-runs';
import { strictestApprovals } from '@runyard/contract/runs/compare-approvals';
import type { AmbientAgentConfig, ChildOverride, MCPServerConfig } from '@runyard/contract/runs/config';
import type { RunAgentRequest } from '@runyard/contract/runs/run-request';
import type { RepeatableRequest } from '../../../platform/idempotency/once.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import { isInSandbox, type RunRights } from '../../../team/access/contents/run-rights.ts';
import { findNamedEnvironment } from '../../../team/environments/named.ts';
import { storedId } from '../../../team/mcp/of-run.ts';
import { secretsOfServers } from '../../../team/mcp/secret-references.ts';
import { withoutSecrets } from '../../../team/redaction/agent-text.ts';
import { skillsOfRun } from '../../../team/skills/skills-of-run.ts';
import { parseSkillSpec } from '../../../team/skills/spec.ts';
import { readGrantedNames } from '../../../team/stored-secrets/run-secrets.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { isPlanning } from '../../executions/plan-mode.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import type { RunCheckout } from '../read/checkout.ts';
import { readRepositories } from '../read/repositories.ts';
import { narrowedChildRuns, overridesOf, readChildRunsPermission } from '../tree/permission.ts';
import { narrowedBudget, type ParentRow, readParentRow } from './parent.ts';
import type { SubmitDeps } from './prepare.ts';
import { workerHostOf } from './request-config.ts';
import { memberOfRunner } from './request-published.ts';
import { type SubmitOutcome, submitRun } from './submit.ts';

/**
 * Returns a member that the child sets although its parent's configuration does not allow it; undefined if there is
 * none.
 */
function forbiddenOverride(
  parent: AmbientAgentConfig,
  child: ChildRunRequest,
): ChildOverride | 'mode' | 'runner_config' | undefined {
  const own = child.config ?? {};
  const allowed = overridesOf(parent);
  if (!allowed.includes('worker_host') && own.worker_host !== undefined && workerHostOf(own) !== workerHostOf(parent))
    return 'worker_host';
  if (
    !allowed.includes('environment_id') &&
    own.environment_id !== undefined &&
    own.environment_id !== parent.environment_id
  )
    return 'environment_id';
  const runner = own.runner_id ? memberOfRunner(own.runner_id) : undefined;
  if (runner !== undefined && !allowed.includes(runner) && own.runner_id !== parent[runner]) return runner;
  // Check the runner only if the child may not choose its environment: a child that may choose its environment may also choose its image.
  if (
    !allowed.includes('environment_id') &&
    own.runner_config !== undefined &&
    !isDeepStrictEqual(own.runner_config, parent.runner_config)
  )
    return 'runner_config';
  if (allowed.includes('child_runs') || own.child_runs?.enabled === false) return undefined;
  if (own.child_runs !== undefined) return 'child_runs';
  return child.mode === 'orchestrate' ? 'mode' : undefined;
}

/**
 * Returns a skill that the child may not have; undefined if there is none. The service reads skills with the credentials of the team. So
 * an agent may name only two kinds of skills: skills in the repositories of its own environment, and skills that a person gave to its own
 * run.
 */
async function forbiddenSkill(
  db: ExecutionDeps['db'],
  { executionId }: RunSession,
  parent: AmbientAgentConfig,
  own: AmbientAgentConfig,
): Promise<string | undefined> {
  const [granted, wanted] = [skillsOfRun(parent), skillsOfRun(own)];
  if (wanted.every((each) => granted.includes(each))) return undefined;
  const repositories = await readRepositories(db, executionId);
  const isReachable = (written: string) => {
    const spec = parseSkillSpec(written, repositories);
    return (
      typeof spec !== 'string' &&
      repositories.some(({ owner, repo }) => owner === spec.repository.owner && repo === spec.repository.repo)
    );
  };
  return wanted.find((each) => !granted.includes(each) && !isReachable(each));
}

/**
 * Returns the child's configuration. Members that the child does not set come from the parent: environment, runner, worker,
 * `on_worker_loss`, harness and model.
 */
function inherited(parent: ParentRow, { config: own = {}, mode }: ChildRunRequest): AmbientAgentConfig {
  const { environment_id, harness, on_worker_loss, runner_config, worker_host } = parent.config;
  const model_id = own.harness?.model_id === undefined ? parent.model_id : undefined;
  const given = Object.entries({
    environment_id,
    harness,
    on_worker_loss,
    runner_config,
    worker_host,
    model_id,
  }).filter(([, value]) => value !== undefined);
  const approvers = parent.config.approvals_from ?? [];
  const { approval_policy, approval_rules } = strictestApprovals(parent.config, own);
  const startsRuns = own.child_runs?.enabled ?? mode === 'orchestrate';
  // Ignore `followups_from` in the child's request: a person, not an agent, decides from whom a run takes follow-ups.
  const { followups_from: _, ...ofChild } = own;
  const { followups_from } = parent.config;
  return {
    ...Object.fromEntries(given),
    ...ofChild,
    ...(followups_from === undefined ? {} : { followups_from }),
    ...narrowedBudget(parent, own),
    ...(approval_policy ? { approval_policy, approval_rules: approval_rules && [...approval_rules] } : {}),
    ...(own.approvals_from ? { approvals_from: own.approvals_from.filter((uid) => approvers.includes(uid)) } : {}),
    ...(startsRuns ? { child_runs: narrowedChildRuns(parent.config, own.child_runs) } : {}),
  };
}

/**
 * Returns the rights that the child can get from its parent. An agent must not read secrets that only setup commands get. So a child has
 * these secrets only if it has the same setup as its parent, whose agent did not choose the setup.
 */
function rightsForChild(parent: ParentRow, child: AmbientAgentConfig): RunRights | null {
  const hasSameSetup =
    child.environment_id === parent.config.environment_id &&
    isDeepStrictEqual(child.runner_config, parent.config.runner_config);
  if (hasSameSetup || parent.rights === null) return parent.rights;
  return { ...parent.rights, secrets: parent.rights.secrets.filter(({ phase }) => phase === undefined) };
}

/**
 * Returns the name of a secret that the child would get although no sandbox of the parent got it; undefined if there is none. Secrets of
 * the parent's environment need no check, because a person chose this environment for both runs.
 */
async function findUngranted(
  db: Queryable,
  { runId, teamId, executor }: RunSession,
  parent: AmbientAgentConfig,
  child: AmbientAgentConfig,
  within: RunRights | null,
): Promise<string | undefined> {
  const { environment_id } = child;
  const other = environment_id !== undefined && environment_id !== parent.environment_id;
  const environment = other ? await findNamedEnvironment(db, { teamId, creator: executor }, environment_id) : undefined;
  // The child lacks the secrets of another environment's setup (`rightsForChild`), and its `withheld` names them.
  const ofEnvironment =
    environment?.kind === 'own' && !environment.isGuest
      ? (environment.config.secrets ?? []).filter(({ phase }) => phase === undefined)
      : [];
  // Headers need no check here: servers that the parent does not have were already refused.
  const ofPrograms = secretsOfServers(child.mcp_servers ?? {}).filter(isInSandbox);
  const ofSetup = within?.secrets.filter(({ phase }) => phase === 'setup').map(({ name }) => name) ?? [];
  const own = (child.secrets ?? []).filter(({ name, phase }) => phase === undefined || !ofSetup.includes(name));
  const wanted = [...own, ...ofEnvironment, ...ofPrograms].map(({ name }) => name);
  if (wanted.length === 0) return undefined;
  const granted = new Set(await readGrantedNames(db, runId));
  return wanted.find((name) => !granted.has(name));
}

/** Outcome of a child's request. `gone` 400: the parent was deleted; `forbidden` 403. */
type ChildRequestOutcome =
  | {
      readonly kind: 'ok';
      readonly request: RunAgentRequest;
      readonly creator: RunActor;
      /** Rights of the parent. */
      readonly within: RunRights | null;
      readonly checkout: RunCheckout | undefined;
    }
  | { readonly kind: 'forbidden'; readonly detail: string }
  | { readonly kind: 'gone' };

/** Returns the request for a child of the session's run, with the parent's secrets redacted, and the actor that creates the child. */
async function childRequest(
  deps: Pick<ExecutionDeps, 'db' | 'secrets' | 'vault'>,
  session: RunSession,
  asked: ChildRunRequest,
): Promise<ChildRequestOutcome> {
  const child = withoutSecrets(deps, session, asked);
  const parent = await readParentRow(deps.db, session.runId);
  if (!parent) return { kind: 'gone' };
  const forbidden = forbiddenOverride(parent.config, child);
  if (forbidden) {
    const member = forbidden === 'mode' ? 'child_runs' : forbidden === 'runner_config' ? 'environment_id' : forbidden;
    const path = forbidden === 'mode' ? 'mode' : `config.${forbidden}`;
    const detail = `${path}: a child run may not have its own. Leave it out, or have a person create this run with "${member}" in config.child_runs.overrides.`;
    return { kind: 'forbidden', detail };
  }
  const servers = childMcpServers(parent.config.mcp_servers ?? {}, child.config?.mcp_servers ?? {});
  if ('forbidden' in servers) {
    const detail = `config.mcp_servers.${servers.forbidden}: a child run can use only the MCP servers of this run: name the same url without headers, or the same id. Use one of them, or a command.`;
    return { kind: 'forbidden', detail };
  }
  const skill = await forbiddenSkill(deps.db, session, parent.config, child.config ?? {});
  if (skill !== undefined) {
    const detail = `config.skill_spec: a child run may follow only skills of this run, or of the repositories of its environment, and not ${skill}.`;
    return { kind: 'forbidden', detail };
  }
  const config = inherited(parent, child);
  const within = rightsForChild(parent, config);
  const ungranted = await findUngranted(deps.db, session, parent.config, config, within);
  if (ungranted !== undefined) {
    const detail = `config.secrets: a child run may have only secrets that this run has, and this run does not have ${ungranted}. Leave it out, or have a person create this run with it.`;
    return { kind: 'forbidden', detail };
  }
  const request = {
    ...child,
    // A turn that changes nothing starts only children that change nothing.
    ...((await isPlanning(deps.db, session.executionId)) ? { mode: 'plan' as const } : {}),
    config: child.config?.mcp_servers === undefined ? config : { ...config, mcp_servers: servers.servers },
    parent_run_id: session.runId,
  };
  return {
    kind: 'ok',
    request,
    creator: { kind: parent.kind, uid: parent.uid },
    within,
    checkout: parent.checkout ?? undefined,
  };
}

type Servers = NonNullable<AmbientAgentConfig['mcp_servers']>;

/** `forbidden`: the name of a server that the child may not have. */
type ChildServers = { readonly servers: Servers } | { readonly forbidden: string };

/**
 * Returns the MCP servers of a child run. An agent may choose any program in the sandbox of its child. Servers that reach the network or
 * stored secrets must be servers of the parent: with the same url and the parent's headers, or with the same id.
 */
function childMcpServers(parent: Servers, own: Servers): ChildServers {
  const servers: Servers = {};
  for (const [name, server] of Object.entries(own)) {
    const granted = server.command === undefined ? grantedBy(parent, server) : server;
    if (granted === undefined) return { forbidden: name };
    servers[name] = granted;
  }
  return { servers };
}

function grantedBy(parent: Servers, { url, headers, ...server }: MCPServerConfig): MCPServerConfig | undefined {
  if (url === undefined)
    return Object.values(parent).find((each) => each.command === undefined && storedId(each) === storedId(server));
  return headers === undefined ? Object.values(parent).find((each) => each.url === url) : undefined;
}

/**
 * Outcome of the start of a child run: the outcome of its submission, or `gone` (404) if the run of the session was
 * deleted.
 */
export type StartChildOutcome = SubmitOutcome | { readonly kind: 'gone' };

/** Starts a child of the session's run. The child has the same team and creator. */
export async function startChild(
  deps: SubmitDeps,
  session: RunSession,
  asked: ChildRunRequest,
  once: RepeatableRequest | undefined,
): Promise<StartChildOutcome> {
  const permission = await readChildRunsPermission(deps.executionDeps.db, session);
  const child = await childRequest(deps.executionDeps, session, asked);
  if (child.kind !== 'ok') return child;
  return await submitRun(deps, {
    actor: { teamId: session.teamId, creator: child.creator },
    request: child.request,
    source: 'ORCHESTRATION',
    within: child.within,
    checkout: child.checkout,
    child: { attempt: session, maxLive: permission?.max_live ?? 0, maxInTree: maxRunsInTree },
    once,
  });
}
