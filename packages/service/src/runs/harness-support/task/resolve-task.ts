import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { findHarness } from '@runyard/contract/agent/harness-presets/presets';
import { commandsOfServices, servicesOf } from '@runyard/contract/environments/services';
import { isFindable } from '@runyard/contract/secrets/secrets';
import type { Settings } from '@runyard/contract/settings/settings';
import type { ErrorDetail } from '@runyard/contract/wire/errors';
import type { ConfigSeal } from '../../../platform/secrets/config-seal.ts';
import type { Signer } from '../../../platform/secrets/signer.ts';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import type { CodeHosts } from '../../../team/code-hosts/code-hosts.ts';
import type { ContentPolicy, PolicyText } from '../../../team/content-policy/content-policy.ts';
import { gatewayPathOf } from '../../../team/environments/git-path.ts';
import { secretsByForm } from '../../../team/mcp/secret-references.ts';
import type { Models } from '../../../team/models/models.ts';
import type { ReadDefinedSkill } from '../../../team/skills/defined.ts';
import type { SkillLibrary } from '../../../team/skills/library.ts';
import type { RunSkill } from '../../../team/skills/of-run.ts';
import { readEarlierConversation } from '../../conversations/earlier-conversation.ts';
import type { EnterRead } from '../../conversations/read.ts';
import type { ExecutionTiming } from '../../executions/deps.ts';
import { readAllowedForRun } from '../../executions/held-actions/held-actions.ts';
import { claimForAgent } from '../../executions/lease/agent-lease.ts';
import { noteClones, readPersonalClones } from '../../executions/run-tokens/personal-clones.ts';
import { codeHostUserOf, readCodeHostUser, readPresentContents } from '../../executions/run-tokens/present-rights.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { agentAttachment } from '../../files/attachments/read.ts';
import { workspaceOfConversation } from '../../files/workspaces/of-conversation.ts';
import { workspaceToRestore } from '../../files/workspaces/read.ts';
import { type JoinedFollowup, joinFollowups, readTakenFiles } from '../../runs/follow-ups/take-followups.ts';
import { childRunsOf } from '../../runs/tree/permission.ts';
import { chooseTaskModel } from './choose-task-model.ts';
import { contentsForSecrets, grantSecrets, readSecretsInFiles, secretsOfTask } from './grant-secrets.ts';
import { mcpServersOfTask } from './mcp-servers-of-task.ts';
import { authorOf, checkpointsOf, lossOf, readTaskRow, type TaskRow } from './read-task-row.ts';
import { findRefused, isReadByPerson, nameKeptObjects } from './repositories-of-task.ts';
import { membersOfSkills, promptOfSkill, skillsOfTask } from './skills-of-task.ts';

/**
 * The task of an agent, or the reason why the agent gets no task:
 * - `model_disabled`: an administrator disabled the model after the run was created.
 * - `model_gone`: the model's provider was configured when the run was created, but is not configured any more.
 * - `model_unreachable`: the endpoint of the run's model lists no models.
 * - `environment_gone`: the environment was deleted before it was set up.
 * - `mcp_server_gone`: a stored MCP server was deleted.
 * - `mcp_server_sealed`: the values of a stored MCP server were encrypted with another key.
 * - `secret_unusable`: a secret was deleted, or the run may not use the secret any more.
 * - `skill_unfit`: a skill of the run does not exist or is malformed.
 * - `skill_unavailable`: the code host cannot be asked for a skill now.
 * - `policy_violation`: the content policy refuses the prompt, a skill or a setup command.
 * - `no_access`: the code host refuses repositories of the environment, or of a skill, to the run.
 * - `busy`: too many long conversations are being read, or the content policy cannot be checked now (`detail`). The agent asks again, and
 *   the service repeats every step.
 */
export type ResolveOutcome =
  | { readonly kind: 'task'; readonly task: AgentTask }
  | {
      readonly kind:
        | 'model_disabled'
        | 'model_gone'
        | 'model_unreachable'
        | 'environment_gone'
        | 'mcp_server_gone'
        | 'policy_violation'
        | 'mcp_server_sealed'
        | 'secret_unusable'
        | 'skill_unfit'
        | 'skill_unavailable';
      readonly message: string;
    }
  | { readonly kind: 'no_access'; readonly message: string; readonly detail: ErrorDetail }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'busy'; readonly detail: string };

const kindOf = {
  unknown: 'model_gone',
  not_configured: 'model_gone',
  disabled: 'model_disabled',
  outage: 'model_unreachable',
  unreachable: 'model_unreachable',
} as const;

/** Returns everything that the agent needs to begin. The waiting follow-ups become part of the agent's first prompt. */
export async function resolveTask(
  deps: {
    readonly db: Database;
    readonly timing: Pick<ExecutionTiming, 'leaseSeconds'>;
    readonly models: Pick<Models, 'resolveForTask' | 'resolve' | 'target' | 'fallsBackToRunbook'>;
    readonly settings: Pick<Settings, 'RUNYARD_ARTIFACT_MB' | 'RUNYARD_WORKSPACE_MB' | 'RUNYARD_CHECKPOINT_SECONDS'>;
    readonly vault: Vault;
    readonly configSeal: ConfigSeal;
    readonly signing: Pick<Signer, 'nameOf'>;
    readonly enterRead: EnterRead;
    readonly codeHosts: CodeHosts;
    readonly skills: SkillLibrary;
    readonly definedSkills: ReadDefinedSkill;
    readonly blobs: BlobStore;
    readonly contentPolicy?: ContentPolicy;
    /** Origin of the service. */
    baseUrl(): string;
  },
  session: RunSession,
): Promise<ResolveOutcome> {
  const { db, models } = deps;
  if (session.phase === 'assigned') await claimForAgent(deps, session);
  const row = await readTaskRow(db, session);
  if (!row) return { kind: 'not_found' };
  const resolution = await chooseTaskModel(deps, session, row);
  // If the run configures a program as its harness, this program may use a model that the service does not know.
  const hasOwnModel = findHarness(row.harness)?.neededCommand !== undefined;
  const isNeeded = resolution.ok || resolution.reason !== 'unreachable' || !hasOwnModel;
  if (!resolution.ok && isNeeded) {
    return { kind: kindOf[resolution.reason], message: resolution.message };
  }
  const resolved = resolution.ok ? resolution.model : undefined;
  const model = resolved?.agentModel;
  const isFresh = row.fresh_number > 0;
  const isFirst = row.continues === null && row.resumes === null && !isFresh;
  const isUsable = row.environment_id === null || row.environment_uid !== null;
  const [{ workspace: ofRun, ...restorable }, ofConversation] = await Promise.all([
    workspaceToRestore(db, session.runId, { ...row, fresh: row.fresh_number }),
    isFirst && isUsable && row.has_earlier ? workspaceOfConversation(db, session) : undefined,
  ]);
  const workspace = ofRun ?? ofConversation?.workspace;
  const isSetUp = workspace !== undefined && workspace.kind !== 'missing' && workspace.kind !== 'changes';
  // A workspace that this run saved has the files as they were at the end of the turn that is continued, or during the turn that is
  // resumed.
  const isRestored = ofRun?.kind !== 'changes' && (row.continues !== null || (ofRun !== undefined && isSetUp));
  if (row.environment_id !== null && row.environment_uid === null && !isSetUp) {
    const message = `The environment ${row.environment_id} of the run was deleted, or does not admit its executor any more, before it was set up. Create a run with another one.`;
    return { kind: 'environment_gone', message };
  }
  const present = await readPresentContents(db, session.executionId);
  const usable = await secretsOfTask(deps, session, { ...row, contents: contentsForSecrets(row, present) });
  if (usable.kind === 'refused') return { kind: 'secret_unusable', message: usable.message };
  const { secrets } = usable;
  const user = await codeHostUserOf(db, session, present);
  const mcp = await mcpServersOfTask(deps, session.teamId, row.config, row.contents, {
    secrets: secretsByForm(secrets),
    whyNotStored: user.without?.team,
  });
  if (mcp.kind !== 'servers') return mcp;
  const repositories = row.environment_config?.github_repos ?? [];
  const answers = isSetUp ? [] : await deps.codeHosts.ask(user, repositories);
  const refused = findRefused(deps, answers);
  if (refused) return refused;
  // The sandbox may read these repositories without a request to the gateway: from the worker's cache, or in the files of another run,
  // which may be deleted later.
  const clones = answers.filter(isReadByPerson).map(({ repository }) => repository);
  const inFilesOfOther = ofConversation?.runId ? await readPersonalClones(db, session.runId) : [];
  await noteClones(db, session.runId, [...clones, ...inFilesOfOther]);
  if (clones.length > 0 && (await readCodeHostUser(db, session)).without?.personal !== user.without?.personal)
    return { kind: 'busy', detail: 'A message arrived that changes the rights of the run.' };
  const ofHosts = (await deps.codeHosts.secretsFor(user, repositories)).map(
    (value) => ({ name: 'code host', kind: 'withheld', value }) as const,
  );
  // Redact these values too, because the files may contain the old value of a secret that was replaced meanwhile.
  const inFiles = ofConversation?.runId ? await readSecretsInFiles(deps, ofConversation.runId) : [];
  const granted = await grantSecrets(
    deps,
    session,
    secrets,
    [...mcp.values, ...ofHosts, ...inFiles].filter(({ value }) => isFindable(value)),
  );
  const namedObjects = isSetUp ? undefined : nameKeptObjects(deps.signing, session.teamId, row, answers, granted);
  const skills = await skillsOfTask(deps, session, user, row, granted.values);
  if (skills.kind !== 'skills') return skills;
  const verdict = await deps.contentPolicy?.check(session.teamId, textsOf(row, skills.skills, isSetUp));
  if (verdict?.kind === 'policy_violation') return { kind: 'policy_violation', message: verdict.detail };
  if (verdict?.kind === 'policy_unavailable') return { kind: 'busy', detail: verdict.detail };
  // A follow-up that arrives later reaches the agent through its inbox.
  const followups = row.has_followups ? await db.transaction((tx) => joinFollowups(tx, session)) : [];
  const earlier = row.has_earlier
    ? await readEarlierConversation(deps, {
        runId: session.runId,
        teamId: session.teamId,
        conversationId: row.conversation_id,
        harness: row.harness,
        continues: row.resumes ?? row.continues ?? row.debugged,
        fresh: row.fresh_number,
        loss: row.resumes === null ? undefined : { after: restorable.seq },
      })
    : {};
  if (earlier === 'busy') return { kind: 'busy', detail: 'Too many long conversations are being read.' };
  const allowed = row.config.approval_policy === 'ask' ? await readAllowedForRun(db, session.runId) : [];
  // The setup of an environment with its own Debian also runs before a workspace is restored.
  const runsSetup = !row.has_started && (!isSetUp || row.environment_config?.system !== undefined);
  const isRunbook = findHarness(row.harness)?.isBuiltIn === true && model === undefined;
  const firstPrompt = row.prompt.trim() === '' ? promptOfSkill(skills.skills, isRunbook) : row.prompt;
  const { prompt, mode, answer } = firstTurnOf({ ...row, prompt: firstPrompt }, followups);
  const { harness } = row.config;
  const childRuns = childRunsOf(row.config, mode);
  const task: AgentTask = {
    run_id: session.runId,
    execution_id: session.executionId,
    execution_number: session.executionNumber,
    conversation_id: row.conversation_id,
    title: row.title,
    prompt,
    ...(mode ? { mode } : {}),
    ...(earlier.conversation ? { conversation: earlier.conversation } : {}),
    ...(workspace ? { workspace } : {}),
    max_output_file_bytes: Math.min(row.max_output_file_mb, deps.settings.RUNYARD_ARTIFACT_MB) * 1024 * 1024,
    max_workspace_bytes: deps.settings.RUNYARD_WORKSPACE_MB * 1024 * 1024,
    ...checkpointsOf(row, deps.settings),
    ...lossOf(row, restorable, earlier.record),
    ...(row.ended_as === null ? {} : { ended_as: row.ended_as }),
    ...(answer ? { decision: decisionOf(answer) } : {}),
    ...(allowed.length > 0 ? { allowed: [...allowed] } : {}),
    ...membersOfSkills(skills.skills, mcp.config),
    ...(mcp.servers.length === 0 ? {} : { mcp_servers: [...mcp.servers] }),
    attachments: await attachmentsOfTask(db, session, row, { isRestored, beginsAnew: ofRun?.kind === 'changes' }),
    harness: {
      type: row.harness,
      ...(harness?.command ? { command: harness.command } : {}),
      ...(harness?.env ? { env: harness.env } : {}),
      ...(model ? { model } : {}),
      ...(resolved && !model && models.fallsBackToRunbook(row.config.model_id ?? harness?.model_id)
        ? { no_model_configured: true as const }
        : {}),
      ...(harness?.reasoning_level ? { reasoning_level: harness.reasoning_level } : {}),
    },
    ...(row.environment_config
      ? {
          environment: {
            ...(row.environment_uid === null ? {} : { uid: row.environment_uid }),
            config: {
              ...row.environment_config,
              ...(row.environment_config.services ? { services: servicesOf(row.environment_config) } : {}),
            },
          },
        }
      : {}),
    author: authorOf(row, deps.baseUrl()),
    ...(childRuns ? { child_runs: childRuns } : {}),
    ...(row.parent_id ? { parent_run: { run_id: row.parent_id, title: row.parent_title ?? '' } } : {}),
    repositories: repositories.map((repository) => ({
      ...repository,
      url: deps.codeHosts.urlOf(repository).href,
      gateway_path: gatewayPathOf(repository),
      ...namedObjects?.mirrorOf(repository),
    })),
    ...(granted.secrets.length > 0 ? { secrets: granted.secrets } : {}),
    ...(runsSetup && granted.setupSecrets.length > 0 ? { setup_secrets: granted.setupSecrets } : {}),
    ...(granted.redact.length > 0 ? { redact: granted.redact } : {}),
    ...namedObjects?.prepared,
  };
  return { kind: 'task', task };
}

/**
 * Returns the texts that the content policy must check now: all texts that the agent receives, except follow-ups. Follow-ups were checked
 * when they were sent.
 */
function textsOf(row: TaskRow, skills: readonly RunSkill[], isSetUp: boolean): PolicyText[] {
  const prompts = [
    row.continues === null ? row.prompt : '',
    row.config.base_prompt ?? '',
    ...skills.map(({ description, body }) => `${description}\n${body}`),
  ];
  const { setup_commands: setup = [] } = row.environment_config ?? {};
  // Services start in each sandbox, also if its files are restored.
  const commands = [...(isSetUp ? [] : setup), ...commandsOfServices(row.environment_config ?? {})];
  return [
    ...prompts.map((text) => ({ kind: 'prompt' as const, text })),
    ...commands.map((text) => ({ kind: 'setup_command' as const, text })),
  ];
}

/** Returns the prompt and mode of the execution's first turn, and the follow-up that answers the agent's open request. */
function firstTurnOf(row: TaskRow, followups: readonly JoinedFollowup[]) {
  const isContinued = row.continues !== null;
  const answer = followups.findLast(({ request }) => request !== null);
  const messages = followups.filter((followup) => followup !== answer).map(({ message }) => message);
  const parts = (isContinued ? messages : [row.prompt, ...messages]).filter((part) => part.trim() !== '');
  // The mode "plan" of a run applies only to the run's own prompt. A follow-up that asks for a plan has this mode itself.
  const modeOfRun = isContinued && row.mode === 'plan' ? null : row.mode;
  const mode = followups.findLast((followup) => followup.mode !== null)?.mode ?? answer?.request?.mode ?? modeOfRun;
  return { prompt: parts.join('\n\n') || (answer ? '' : 'Continue.'), mode, answer };
}

/**
 * Returns the attachments of the run's request and of the follow-ups that agents have taken. `earlier` marks attachments that an earlier
 * execution received. A run that begins anew gets no attachments of earlier follow-ups.
 */
async function attachmentsOfTask(
  db: Database,
  session: RunSession,
  row: TaskRow,
  { isRestored, beginsAnew }: { readonly isRestored: boolean; readonly beginsAnew: boolean },
): Promise<AgentTask['attachments']> {
  const earlier = (is: boolean) => (is ? { earlier: true as const } : {});
  const taken = row.has_followups ? await readTakenFiles(db, session) : [];
  return [
    ...row.attachments.map((file) => ({ ...agentAttachment(file), ...earlier(isRestored) })),
    ...taken
      .filter(({ is_earlier }) => !(beginsAnew && is_earlier))
      .map(({ is_earlier, ...file }) => ({ ...agentAttachment(file), ...earlier(is_earlier) })),
  ];
}

/** Returns the request that the agent made to a person in an earlier sandbox, and the answer to this request. */
function decisionOf({ id, message, decision, request }: JoinedFollowup): AgentTask['decision'] {
  if (request === null) return undefined;
  const { asked_at: _, held: _held, mode: _mode, ...withoutTime } = request;
  return {
    request: withoutTime,
    follow_up_id: id,
    ...(decision ? { decision } : {}),
    ...(message.trim() === '' ? {} : { message }),
  };
}
