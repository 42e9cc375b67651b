import type { AgentTask } from '@runyard/contract/agent-protocol';
import type { AmbientAgentConfig } from '@runyard/contract/config';
import type { EnvironmentConfig } from '@runyard/contract/environments';
import type { RunMode } from '@runyard/contract/run-request';
import type { Settings } from '@runyard/contract/settings';
import type { EnterRead } from '../../conversations/read-limits.ts';
import { readSavedConversation } from '../../conversations/saved.ts';
import { gatewayPathOf } from '../../environments/git-path.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { type AttachmentRow, agentAttachment, attachmentsOf } from '../../files/attachments/agent-view.ts';
import { workspaceToRestore } from '../../files/workspaces/read.ts';
import type { Models } from '../../models/models.ts';
import { type JoinedFollowup, joinFollowups, readTakenFiles } from '../../runs/follow-ups/take-followups.ts';
import { childRunsOf } from '../../runs/tree/permission.ts';
import type { Database, Statement } from '../../store/database/database.ts';

const readTask: Statement = {
  name: 'read_agent_task',
  text: `
    SELECT r.title, r.prompt, r.mode, r.config, (SELECT continues FROM executions WHERE id = $2) AS continues,
      (SELECT max(e.number) FROM executions e JOIN followups f ON f.execution_id = e.id AND f.is_debug
       WHERE e.run_id = $1 AND e.id <> $2 AND NOT EXISTS (SELECT FROM executions s WHERE s.run_id = $1 AND s.started_at IS NOT NULL)) AS debugged, r.harness, r.conversation_id, r.model_id, r.environment_id, p.id AS parent_id, p.title AS parent_title, env.uid AS environment_uid, env.config AS environment_config,
      ${attachmentsOf('a.run_id = r.id AND a.followup_id IS NULL')} AS attachments
    FROM runs r LEFT JOIN environments env ON env.uid = r.environment_id AND env.team_id = r.team_id
      LEFT JOIN runs p ON p.id = r.parent_run_id
    WHERE r.id = $1`,
};

interface TaskRow {
  title: string;
  prompt: string;
  mode: RunMode | null;
  /** Execution whose conversation goes on; null: the run's prompt was never played. */
  continues: number | null;
  /** Where it was never played: the last execution whose failed setup was talked about; null: none was. */
  debugged: number | null;
  config: AmbientAgentConfig;
  harness: string;
  conversation_id: string;
  model_id: string;
  parent_id: string | null;
  parent_title: string | null;
  /** As the request named it. */
  environment_id: string | null;
  /** Null: there is none, or it was deleted. */
  environment_uid: string | null;
  environment_config: EnvironmentConfig | null;
  /** Those of the request. */
  attachments: AttachmentRow[];
}

/**
 * `model_gone`: the model could be named when the run was created, but its provider is not configured any more;
 * `environment_gone`: its environment was deleted before it was set up.
 */
export type ResolveOutcome =
  | { readonly kind: 'task'; readonly task: AgentTask }
  | { readonly kind: 'model_gone' | 'environment_gone'; readonly message: string }
  | { readonly kind: 'not_found' }
  /** Too many long conversations are being read; all that was done is done again by another call. */
  | { readonly kind: 'busy' };

const earlier = true as const;

/** Everything the agent needs to begin. */
export async function resolveTask(
  deps: {
    readonly db: Database;
    readonly models: Pick<Models, 'resolve'>;
    readonly settings: Pick<Settings, 'RUNYARD_WORKSPACE_MB'>;
    readonly enterRead: EnterRead;
  },
  session: RunSession,
): Promise<ResolveOutcome> {
  const { db, models } = deps;
  const [row] = await db.query<TaskRow>(readTask, [session.runId, session.executionId]);
  if (!row) return { kind: 'not_found' };
  const resolution = models.resolve(row.model_id);
  if (!resolution.ok) return { kind: 'model_gone', message: resolution.message };
  const model = resolution.model.agentModel;
  const workspace = await workspaceToRestore(db, session.runId, row.continues);
  const isSetUp = workspace !== undefined && workspace.kind !== 'missing';
  if (row.environment_id !== null && row.environment_uid === null && !isSetUp) {
    const message = `The environment ${row.environment_id} of the run was deleted before it was set up. Create a run with another one.`;
    return { kind: 'environment_gone', message };
  }
  const followups = await db.transaction((tx) => joinFollowups(tx, session));
  const conversation = await readSavedConversation(deps, {
    runId: session.runId,
    teamId: session.teamId,
    conversationId: row.conversation_id,
    harness: row.harness,
    continues: row.continues ?? row.debugged,
  });
  if (conversation === 'busy') return { kind: 'busy' };
  const answer = followups.findLast(({ request }) => request !== null);
  const said = followups.filter((followup) => followup !== answer);
  const parts = [...(row.continues === null ? [row.prompt] : []), ...said.map(({ message }) => message)];
  // To plan is what the run's own prompt was for: who says something after it, in the same sandbox or in a new one, says so again.
  const ofRun = row.continues !== null && row.mode === 'plan' ? null : row.mode;
  const mode = followups.findLast((followup) => followup.mode !== null)?.mode ?? ofRun;
  const { harness } = row.config;
  const childRuns = childRunsOf(row.config, mode);
  const task: AgentTask = {
    run_id: session.runId,
    execution_id: session.executionId,
    execution_number: session.executionNumber,
    conversation_id: row.conversation_id,
    title: row.title,
    prompt: parts.filter((part) => part.trim() !== '').join('\n\n') || (answer ? '' : 'Continue.'),
    ...(mode ? { mode } : {}),
    ...(conversation ? { conversation } : {}),
    ...(workspace ? { workspace } : {}),
    max_workspace_bytes: deps.settings.RUNYARD_WORKSPACE_MB * 1024 * 1024,
    ...(answer ? { decision: decisionOf(answer) } : {}),
    agent_config: row.config,
    attachments: [
      ...row.attachments.map((file) => ({ ...agentAttachment(file), ...(row.continues === null ? {} : { earlier }) })),
      ...(await readTakenFiles(db, session)).map(({ is_earlier, ...file }) => ({
        ...agentAttachment(file),
        ...(is_earlier ? { earlier } : {}),
      })),
    ],
    harness: {
      type: row.harness,
      ...(harness?.command ? { command: harness.command } : {}),
      ...(model ? { model } : {}),
      ...(harness?.reasoning_level ? { reasoning_level: harness.reasoning_level } : {}),
    },
    ...(row.environment_uid && row.environment_config
      ? { environment: { uid: row.environment_uid, config: row.environment_config } }
      : {}),
    ...(childRuns ? { child_runs: childRuns } : {}),
    ...(row.parent_id ? { parent_run: { run_id: row.parent_id, title: row.parent_title ?? '' } } : {}),
    repositories: (row.environment_config?.github_repos ?? []).map(({ owner, repo }) => ({
      owner,
      repo,
      gateway_path: gatewayPathOf({ owner, repo }),
    })),
  };
  return { kind: 'task', task };
}

/** What the agent had asked in its earlier sandbox, and what was answered. */
function decisionOf({ id, message, decision, request }: JoinedFollowup): AgentTask['decision'] {
  if (request === null) return undefined;
  const { asked_at: _, ...asked } = request;
  return {
    request: asked,
    follow_up_id: id,
    ...(decision ? { decision } : {}),
    ...(message.trim() === '' ? {} : { message }),
  };
}
