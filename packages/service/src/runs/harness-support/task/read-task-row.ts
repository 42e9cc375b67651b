import type { AgentTask, TaskAuthor } from '@runyard/contract/agent/agent-protocol';
import type { EnvironmentConfig } from '@runyard/contract/environments/environments';
import type { BaseCommit } from '@runyard/contract/runs/agent-events';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { RunMode } from '@runyard/contract/runs/message-origin';
import { terminalStates } from '@runyard/contract/runs/run-states';
import { runnerOf } from '@runyard/contract/runs/runner';
import type { RunState } from '@runyard/contract/runs/states';
import type { Settings } from '@runyard/contract/settings/settings';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  type RowOf,
  text,
  uuid,
} from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import type { RunContent } from '../../../team/access/contents/content.ts';
import type { RunRights } from '../../../team/access/contents/run-rights.ts';
import { type NameAndAddress, nameAndAddressOf } from '../../../team/access/profiles.ts';
import { unexpectedPool } from '../../../team/access/worker-pools/pools.ts';
import { configOfRun } from '../../../team/environments/config-of-run.ts';
import { mayUse } from '../../../team/environments/may-use.ts';
import { type FreshCheckParts, freshCheckOf } from '../../executions/fresh-checks/fresh-checks.ts';
import type { Phase } from '../../executions/phases.ts';
import { type Attempt, AttemptOver, isAttempt } from '../../executions/run-tokens/attempt.ts';
import { lastFresh } from '../../executions/run-tokens/present-rights.ts';
import { type AttachmentRow, attachmentsOf } from '../../files/attachments/read.ts';
import { atCheckout, type RunCheckout } from '../../runs/read/checkout.ts';

const endStates = `(${terminalStates.map((state) => `'${state}'`).join(', ')})`;

const readTask = defineStatement({
  name: 'read_agent_task',
  text: `
    SELECT r.title, q.prompt, r.mode, q.config, q.comparison_commits, q.contents, ${unexpectedPool('r', 'own')} AS pool, q.rights, q.checkout, own.continues, (SELECT v.state FROM run_events v WHERE v.run_id = r.id AND v.state IN ${endStates} ORDER BY v.seq DESC LIMIT 1) AS ended_as, own.image, ${lastFresh('r.id', 'own.number')} AS fresh_number, own.resumes, own.loss_message,
      (SELECT max(e.number) FROM executions e JOIN followups f ON f.run_id = $1 AND f.execution_id = e.id AND f.is_debug
       WHERE e.run_id = $1 AND e.id <> $2 AND NOT EXISTS (SELECT FROM executions s WHERE s.run_id = $1 AND s.started_at IS NOT NULL)) AS debugged,
      r.harness, r.executor_kind, r.executor_uid, ${nameAndAddressOf('r.executor_kind', 'r.executor_uid', 'r.team_id')} AS executor_name, r.conversation_id, r.model_id, r.wanted_model_id, r.environment_id, p.id AS parent_id, p.title AS parent_title,
      CASE WHEN ${configOfRun('env', 'r')} IS NOT NULL THEN env.uid END AS environment_uid, ${configOfRun('env', 'r')} AS environment_config, coalesce(env.team_id = r.team_id, false) AS is_own_environment,
      ${attachmentsOf('a.run_id = r.id AND a.followup_id IS NULL')} AS attachments,
      ${freshCheckOf('r.id')} AS fresh_check,
      CASE WHEN ${isAttempt('own', '$3')} THEN own.phase END AS phase, own.started_at IS NOT NULL AS has_started, EXISTS (SELECT FROM followups f WHERE f.run_id = $1) AS has_followups,
      (SELECT t.max_output_file_mb FROM teams t WHERE t.id = r.team_id) AS max_output_file_mb,
      own.number > 1 OR EXISTS (SELECT FROM runs o WHERE o.conversation_id = r.conversation_id AND o.id <> $1 OFFSET 0)
        OR EXISTS (SELECT FROM forked_runs o WHERE o.conversation_id = r.conversation_id) AS has_earlier
    FROM runs r JOIN run_requests q ON q.run_id = r.id JOIN executions own ON own.id = $2 LEFT JOIN environments env ON env.uid = r.environment_id AND ${mayUse('env', 'r')}
      LEFT JOIN runs p ON p.id = r.parent_run_id
    WHERE r.id = $1`,
  row: {
    title: text(),
    prompt: text(),
    mode: nullable(text<RunMode>()),
    /**
     * Number of the earlier execution whose conversation this execution continues; NULL: no agent has begun to work on the run's prompt.
     */
    continues: nullable(integer),
    /** The state in which the run last ended; NULL: the run has not ended before. */
    ended_as: nullable(text<RunState>()),
    /** Number of the last execution that began with only the stored changes of the run; 0: there is none. */
    fresh_number: integer,
    /** Number of the execution whose lost turn this execution resumes; NULL: it resumes no turn. */
    resumes: nullable(integer),
    loss_message: nullable(text()),
    /**
     * Number of the last execution that took a follow-up after its setup had failed; NULL: there is none, or a setup of the run has
     * succeeded.
     */
    debugged: nullable(integer),
    config: json<AmbientAgentConfig>(),
    /** The commits at which the run of a comparison begins; NULL: it is not of a comparison. */
    comparison_commits: nullable(json<readonly BaseCommit[]>()),
    contents: json<RunContent[]>(),
    /** The contents of the execution's pool that the run does not list; NULL if there are none. */
    pool: nullable(json<readonly RunContent[]>()),
    /** NULL if the run was created before runs had rights. */
    rights: nullable(json<RunRights>()),
    checkout: nullable(json<RunCheckout>()),
    harness: text(),
    /** Kind of the run's executor: the person or service account whose access the run uses. */
    executor_kind: text<RunActor['kind']>(),
    executor_uid: text(),
    executor_name: nullable(json<NameAndAddress>()),
    conversation_id: uuid,
    model_id: text(),
    /** Model with which the run was created, if the run uses another model because of an outage; otherwise NULL. */
    wanted_model_id: nullable(text()),
    parent_id: nullable(uuid),
    parent_title: nullable(text()),
    /** The environment's id as the request named it. */
    environment_id: nullable(text()),
    /** NULL if the run has no environment, or if the environment or its revision was deleted. */
    environment_uid: nullable(text()),
    /**
     * Configuration of the environment, with the setup commands of the run's runner. NULL if the run has neither an environment nor such
     * commands.
     */
    environment_config: nullable(json<EnvironmentConfig>()),
    image: nullable(text()),
    /** False if the run has no environment, or if the environment belongs to another team, which lets this team use it as a guest. */
    is_own_environment: boolean,
    /** Attachments of the request. */
    attachments: json<readonly AttachmentRow[]>(),
    /** The check that the run runs in a fresh sandbox; NULL: the run is not the run of a check. */
    fresh_check: nullable(json<FreshCheckParts>()),
    /** NULL if the attempt is over. */
    phase: nullable(text<Phase>()),
    /** True if the agent has given the prompt to the harness, so the setup has ended. */
    has_started: boolean,
    has_followups: boolean,
    /** Maximum size of the file with the whole output of a command. */
    max_output_file_mb: integer,
    /** True if the conversation of the run has other executions or other runs. */
    has_earlier: boolean,
  },
});

export type TaskRow = RowOf<typeof readTask>;

/**
 * Puts the setup commands of the runner before those of the environment, because the environment's commands may need the results of the
 * runner's commands.
 */
function withRunner(config: AmbientAgentConfig, environment: EnvironmentConfig | null): EnvironmentConfig | null {
  const commands = runnerOf(config)?.setup_commands ?? [];
  if (commands.length === 0) return environment;
  return { ...environment, setup_commands: [...commands, ...(environment?.setup_commands ?? [])] };
}

/**
 * Reads the facts about the run, its parent run and its environment that the agent of an attempt needs. Locks nothing. Throws
 * `AttemptOver`.
 */
export async function readTaskRow(
  db: Queryable,
  { runId, executionId, tokenHash }: Attempt,
): Promise<TaskRow | undefined> {
  const [row] = await db.query(readTask, [runId, executionId, tokenHash]);
  if (row === undefined) return undefined;
  if (row.phase === null) throw new AttemptOver('superseded');
  if (row.phase === 'stopping') throw new AttemptOver('stopping');
  const contents = [...row.contents, ...(row.pool ?? [])];
  return {
    ...row,
    contents,
    environment_config: withRunner(row.config, atCheckout(row.environment_config, row.checkout)),
  };
}

/**
 * Returns the author of a run's commits: the run's executor. If the service knows no mail address of the executor, the author gets an address
 * that receives no mail. `baseUrl`: origin of the service.
 */
export function authorOf(
  { executor_uid: uid, executor_name: known }: Pick<TaskRow, 'executor_uid' | 'executor_name'>,
  baseUrl: string,
): TaskAuthor {
  const email = known?.email ?? `${uid}@noreply.${new URL(baseUrl).hostname}`;
  return { name: known?.display_name ?? uid, email };
}

/** Returns the member of a task that says how often the agent takes checkpoints. */
export function checkpointsOf(
  { config }: Pick<TaskRow, 'config'>,
  { RUNYARD_CHECKPOINT_SECONDS: seconds }: Pick<Settings, 'RUNYARD_CHECKPOINT_SECONDS'>,
): Pick<AgentTask, 'checkpoint_seconds'> {
  return config.on_worker_loss === 'resume' && seconds > 0 ? { checkpoint_seconds: seconds } : {};
}

/**
 * Returns the member of a task that describes the lost machine, if the execution resumes a turn. `record`: the conversation after
 * `kept`.
 */
export function lossOf(
  { resumes, loss_message: message }: Pick<TaskRow, 'resumes' | 'loss_message'>,
  kept: { readonly keptAt?: string | undefined; readonly doneBlocks: number },
  record: string | undefined,
): Pick<AgentTask, 'loss'> {
  if (resumes === null) return {};
  return {
    loss: {
      message: message ?? '',
      ...(kept.keptAt === undefined ? {} : { kept_at: kept.keptAt }),
      ...(record === undefined ? {} : { record }),
      done_blocks: kept.doneBlocks,
    },
  };
}
