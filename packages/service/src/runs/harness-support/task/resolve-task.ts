import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { findHarness } from '@runyard/contract/agent/harness-presets/presets';
import { commandsOfServices } from '@runyard/contract/environments/services';
import type { ErrorDetail } from '@runyard/contract/wire/errors';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { ContentPolicy, PolicyText } from '../../../team/content-policy/content-policy.ts';
import type { Models } from '../../../team/models/models.ts';
import type { ResolvedModel } from '../../../team/models/resolution.ts';
import type { ReadDefinedSkill } from '../../../team/skills/defined.ts';
import type { SkillLibrary } from '../../../team/skills/library.ts';
import type { RunSkill } from '../../../team/skills/of-run.ts';
import { type EarlierConversation, readEarlierConversation } from '../../conversations/earlier-conversation.ts';
import type { EnterRead } from '../../conversations/read.ts';
import type { ExecutionTiming } from '../../executions/deps.ts';
import { claimForAgent } from '../../executions/lease/agent-lease.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { type AttachmentRow, payloadFile } from '../../files/attachments/read.ts';
import { joinFollowups } from '../../runs/follow-ups/take-followups.ts';
import { type AccessDeps, accessOfTask } from './access-of-task.ts';
import { chooseTaskModel } from './choose-task-model.ts';
import { type ComposeDeps, composeTask } from './compose-task.ts';
import { filesOfTask, type TaskFiles } from './files-of-task.ts';
import { readTaskRow, type TaskRow } from './read-task-row.ts';
import { skillsOfTask } from './skills-of-task.ts';

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
 * - `busy`: the conversation's last run still stores its files, too many long conversations are being read, or the content policy cannot be
 *   checked now (`detail`). The agent asks again, and the service repeats every step.
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

interface ResolveDeps extends AccessDeps, ComposeDeps {
  readonly db: AccessDeps['db'];
  readonly codeHosts: AccessDeps['codeHosts'];
  readonly timing: Pick<ExecutionTiming, 'leaseSeconds'>;
  readonly models: Pick<Models, 'resolveForTask' | 'resolve' | 'target' | 'fallsBackToRunbook'>;
  readonly enterRead: EnterRead;
  readonly skills: SkillLibrary;
  readonly definedSkills: ReadDefinedSkill;
  /** Reads the files that belong to the event which started a run, besides its payload, and stores them with the run. */
  filesOfEvent(
    run: Pick<RunSession, 'runId' | 'teamId'>,
    known: readonly AttachmentRow[],
  ): Promise<readonly AttachmentRow[]>;
  readonly blobs: BlobStore;
  readonly contentPolicy?: ContentPolicy;
}

/** Returns everything that the agent needs to begin. The waiting follow-ups become part of the agent's first prompt. */
export async function resolveTask(deps: ResolveDeps, session: RunSession): Promise<ResolveOutcome> {
  const { db } = deps;
  if (session.phase === 'assigned') await claimForAgent(deps, session);
  const row = await readTaskRow(db, session);
  if (!row) return { kind: 'not_found' };
  const chosen = await modelOfTask(deps, session, row);
  if (chosen.kind !== 'model') return chosen;
  const files = await filesOfTask(db, session, row);
  if (files.kind !== 'files') return files;
  const access = await accessOfTask(deps, session, row, files);
  if (access.kind !== 'access') return access;
  const found = await skillsOfTask(deps, session, access.user, row, access.granted.values);
  if (found.kind !== 'skills') return found;
  const { skills } = found;
  const verdict = await deps.contentPolicy?.check(session.teamId, textsOf(row, skills, files.isSetUp));
  if (verdict?.kind === 'policy_violation') return { kind: 'policy_violation', message: verdict.detail };
  if (verdict?.kind === 'policy_unavailable') return { kind: 'busy', detail: verdict.detail };
  // A follow-up that arrives later reaches the agent through its inbox.
  const followups = row.has_followups ? await db.transaction((tx) => joinFollowups(tx, session)) : [];
  const earlier = await earlierOfTask(deps, session, row, files);
  if (earlier === 'busy') return { kind: 'busy', detail: 'Too many long conversations are being read.' };
  const isFirst = row.continues === null && !row.has_started;
  const isOfEvent = row.attachments.some(({ file_name: name }) => name === payloadFile);
  const attachments = isFirst && isOfEvent ? await deps.filesOfEvent(session, row.attachments) : row.attachments;
  const parts = { row: { ...row, attachments }, model: chosen.model, files, access, skills, followups, earlier };
  return { kind: 'task', task: await composeTask(deps, session, parts) };
}

const kindOf = {
  unknown: 'model_gone',
  not_configured: 'model_gone',
  disabled: 'model_disabled',
  outage: 'model_unreachable',
  unreachable: 'model_unreachable',
} as const;

/** Returns the model of an execution that begins. It is undefined if only the harness of the run knows its model. */
async function modelOfTask(
  deps: ResolveDeps,
  session: RunSession,
  row: TaskRow,
): Promise<
  | { readonly kind: 'model'; readonly model: ResolvedModel | undefined }
  | { readonly kind: (typeof kindOf)[keyof typeof kindOf]; readonly message: string }
> {
  const resolution = await chooseTaskModel(deps, session, row);
  if (resolution.ok) return { kind: 'model', model: resolution.model };
  // If the run configures a program as its harness, this program may use a model that the service does not know.
  const hasOwnModel = findHarness(row.harness)?.neededCommand !== undefined;
  if (resolution.reason === 'unreachable' && hasOwnModel) return { kind: 'model', model: undefined };
  return { kind: kindOf[resolution.reason], message: resolution.message };
}

/** Returns the conversation of earlier executions and runs; empty if there are none. */
async function earlierOfTask(
  deps: ResolveDeps,
  { runId, teamId }: RunSession,
  row: TaskRow,
  { saved }: TaskFiles,
): Promise<EarlierConversation | 'busy'> {
  if (!row.has_earlier) return {};
  return await readEarlierConversation(deps, {
    runId,
    teamId,
    conversationId: row.conversation_id,
    harness: row.harness,
    continues: row.resumes ?? row.continues ?? row.debugged,
    fresh: row.fresh_number,
    loss: row.resumes === null ? undefined : { after: saved.seq },
  });
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
