/** Builds the items of runs that the API answers with. */
import type { RunItem } from '@runyard/contract/runs';
import { readProfiles } from '../../access/profiles.ts';
import { isRunTypeCancellable } from '../../executions/cancel/cancel.ts';
import { blockedOn } from '../../executions/debug-window/block.ts';
import { readArtifactItems } from '../../files/artifacts/read.ts';
import type { Queryable } from '../../store/database/database.ts';
import { usageOfRuns } from '../../usage/usage-of-run.ts';
import { isoDuration } from './duration.ts';
import type { RunRow } from './run-row.ts';

/** Team whose runs are shown, and the address under which its people reach the service. */
export interface ReadContext {
  readonly teamId: string;
  readonly teamUid: string;
  readonly baseUrl: string;
}

/** Phases of an execution that has a sandbox. */
const sandboxPhases = ['claimed', 'running', 'idle', 'stopping'];

/** Returns the items of the rows, in their order, with a number of queries that does not depend on the number of rows. */
export async function toRunItems(db: Queryable, context: ReadContext, rows: readonly RunRow[]): Promise<RunItem[]> {
  if (rows.length === 0) return [];
  const ids = rows.map(({ id }) => id);
  const actors = rows.flatMap((row) => [
    { kind: row.creator_kind, uid: row.creator_uid },
    { kind: row.executor_kind, uid: row.executor_uid },
  ]);
  const [artifacts, usage, profileOf] = await Promise.all([
    readArtifactItems(db, ids),
    usageOfRuns(db, ids),
    readProfiles(db, context.teamId, actors),
  ]);
  return rows.map((row): RunItem => {
    const requestUsage = usage.get(row.id);
    const question = row.open_request ?? row.debug_request;
    return {
      run_id: row.id,
      task_id: row.id,
      title: row.title,
      state: row.state,
      prompt: row.prompt,
      created_at: row.created_at,
      updated_at: row.updated_at,
      started_at: row.started_at,
      ...(row.status_message === null
        ? {}
        : {
            status_message: {
              message: row.status_message,
              ...(row.error_code ? { error_code: row.error_code } : {}),
              ...(row.retryable === null ? {} : { retryable: row.retryable }),
              ...(row.debug_until === null ? {} : { session_debug_until: row.debug_until }),
            },
          }),
      ...(question ? { blocked_on: blockedOn(question) } : {}),
      source: row.source,
      ...(row.session_id === null ? {} : { session_id: row.session_id }),
      session_link: `${context.baseUrl}/runs/${row.id}`,
      creator: profileOf({ kind: row.creator_kind, uid: row.creator_uid }),
      executor: profileOf({ kind: row.executor_kind, uid: row.executor_uid }),
      agent_config: row.config,
      ...(row.skill_spec ? { agent_skill: skillOf(row.skill_spec) } : {}),
      conversation_id: row.conversation_id,
      ...(row.parent_run_id ? { parent_run_id: row.parent_run_id } : {}),
      is_sandbox_running: sandboxPhases.includes(row.phase ?? ''),
      is_run_type_cancellable: isRunTypeCancellable(row),
      artifacts: artifacts.get(row.id) ?? [],
      metadata: row.metadata,
      scope: { type: 'Team', uid: context.teamUid },
      execution_location: row.execution_location,
      ...(requestUsage ? { request_usage: requestUsage } : {}),
      ...droppedOf(row),
      run_time: isoDuration(row.seconds ?? 0),
    };
  });
}

function droppedOf(row: RunRow): Pick<RunItem, 'dropped_output'> {
  const dropped = { events: Number(row.dropped_events), transcript_lines: Number(row.dropped_lines) };
  return dropped.events + dropped.transcript_lines > 0 ? { dropped_output: dropped } : {};
}

function skillOf(spec: string): NonNullable<RunItem['agent_skill']> {
  const place = spec.slice(spec.indexOf(':') + 1);
  const name = place
    .split('/')
    .filter((part) => part !== 'SKILL.md')
    .at(-1);
  return { ...(name ? { name } : {}), ...(place.includes('/') ? { full_path: place } : {}) };
}
