/** Builds the API objects (run items) that describe runs. */

import { describeApprovals } from '@runyard/contract/runs/compare-approvals';
import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { UserProfile } from '@runyard/contract/wire/profiles';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import { toContentItem, toWithheldRight } from '../../../team/access/contents/run-rights.ts';
import { scopeOf } from '../../../team/access/ownership.ts';
import { readProfiles } from '../../../team/access/profiles.ts';
import { usageOfRuns } from '../../../team/usage/usage-of-run.ts';
import { isRunTypeCancellable } from '../../executions/cancel/cancel.ts';
import { blockedOn } from '../../executions/idle/debug-window.ts';
import { hasSandbox } from '../../executions/phases.ts';
import { readWaits } from '../../executions/waiting/read-waits.ts';
import { readArtifactItems } from '../../files/artifacts/read.ts';
import type { RunRow } from './run-row.ts';

/** The team of the runs, and the address at which people reach the service. */
export interface ReadContext {
  readonly teamId: string;
  readonly teamUid: string;
  readonly baseUrl: string;
}

/** Returns the items of the rows, in the same order. The number of queries does not depend on the number of rows. */
export async function toRunItems(db: Queryable, context: ReadContext, rows: readonly RunRow[]): Promise<RunItem[]> {
  if (rows.length === 0) return [];
  const ids = rows.map(({ id }) => id);
  const actors = rows.flatMap((row) => [
    { kind: row.creator_kind, uid: row.creator_uid },
    { kind: row.executor_kind, uid: row.executor_uid },
    ...row.contents.flatMap(({ author }) => author ?? []),
  ]);
  const mayWait = rows.filter(({ state, phase }) => !isTerminal(state) || phase === 'idle').map(({ id }) => id);
  const [artifacts, usage, profileOf, waits] = await Promise.all([
    readArtifactItems(db, ids),
    usageOfRuns(db, ids),
    readProfiles(db, context.teamId, actors),
    readWaits(db, context.teamId, mayWait),
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
      finished_at: row.ended_at,
      ...statusOf(row, waits.get(row.id)),
      ...errorCategoryOf(row),
      ...(question ? { blocked_on: blockedOn(question) } : {}),
      source: row.source,
      ...scheduleOf(row),
      ...(row.session_id === null ? {} : { session_id: row.session_id }),
      session_link: `${context.baseUrl}/runs/${row.id}`,
      creator: profileOf({ kind: row.creator_kind, uid: row.creator_uid }),
      executor: profileOf({ kind: row.executor_kind, uid: row.executor_uid }),
      agent_config: row.config,
      ...approvalsOf(row),
      model_id: row.model_id,
      ...(row.skill_spec ? { agent_skill: row.skill ?? skillOf(row.skill_spec) } : {}),
      conversation_id: row.conversation_id,
      ...(row.parent_run_id ? { parent_run_id: row.parent_run_id } : {}),
      ...(row.retry_of ? { retry_of: row.retry_of } : {}),
      ...(row.rerun_of ? { rerun_of: row.rerun_of } : {}),
      ...(row.comparison_commits ? { is_comparison: true } : {}),
      root_run_id: row.ancestor_ids.at(-1) ?? row.id,
      ...factoryOf(row),
      is_sandbox_running: hasSandbox(row.phase),
      ...(row.state === 'FAILED' ? { debug_agent_available: row.debug_until !== null } : {}),
      is_run_type_cancellable: isRunTypeCancellable(row),
      artifacts: artifacts.get(row.id) ?? [],
      metadata: row.metadata,
      scope: scopeOf({ teamId: context.teamId }, context.teamUid),
      execution_location: row.execution_location,
      ...(requestUsage ? { request_usage: requestUsage } : {}),
      ...droppedOf(row),
      ...rightsOf(row, profileOf),
      run_time: isoDuration(row.seconds ?? 0),
    };
  });
}

function approvalsOf({ config }: Pick<RunRow, 'config'>): Pick<RunItem, 'approvals'> {
  const approvals = describeApprovals(config);
  return approvals.length > 0 ? { approvals } : {};
}

/** Returns the kind of the error of a run that has failed. */
export function errorCategoryOf({ state }: Pick<RunRow, 'state'>): Pick<RunItem, 'error_category'> {
  if (state === 'FAILED') return { error_category: 'user_error' };
  return state === 'ERROR' ? { error_category: 'platform_error' } : {};
}

/** The columns that explain the state of a run. */
export type StatusColumns = Pick<
  RunRow,
  'status_message' | 'error_code' | 'retryable' | 'error_detail' | 'debug_until' | 'phase'
>;

/** Returns the reason for the run's state and, if the run waits, the reason for the wait. A run that waits for a retry has both. */
export function statusOf(row: StatusColumns, waits: string | undefined): Pick<RunItem, 'status_message'> {
  const message = [row.status_message, waits].filter((part) => part !== null && part !== undefined).join('\n');
  if (row.status_message === null && waits === undefined) return {};
  return {
    status_message: {
      message,
      ...(row.error_code ? { error_code: row.error_code } : {}),
      ...(row.retryable === null ? {} : { retryable: row.retryable }),
      ...row.error_detail,
      ...(row.debug_until === null
        ? {}
        : { session_debug_until: row.debug_until, debug_agent_active: row.phase === 'running' }),
    },
  };
}

export function scheduleOf({
  schedule_id,
  schedule_name,
  schedule_cron,
}: Pick<RunRow, 'schedule_id' | 'schedule_name' | 'schedule_cron'>): Pick<RunItem, 'schedule'> {
  if (schedule_id === null || schedule_name === null || schedule_cron === null) return {};
  return { schedule: { schedule_id, schedule_name, cron_schedule: schedule_cron } };
}

/**
 * Returns the factory whose definition the run executes. Metadata does not prove the factory, because everyone who creates a run may set
 * metadata.
 */
export function factoryOf({ contents }: Pick<RunRow, 'contents'>): Pick<RunItem, 'factory_uid'> {
  const uid = contents.find(({ kind }) => kind === 'definition')?.uid;
  return uid === undefined ? {} : { factory_uid: uid };
}

function droppedOf(row: RunRow): Pick<RunItem, 'dropped_output'> {
  const dropped = { events: Number(row.dropped_events), transcript_lines: Number(row.dropped_lines) };
  return dropped.events + dropped.transcript_lines > 0 ? { dropped_output: dropped } : {};
}

/**
 * Returns the contents that the run executes, and the rights that are withheld from the run. Authors are shown without their addresses,
 * because they may belong to another team.
 */
function rightsOf(
  { contents, rights }: RunRow,
  profileOf: (actor: RunActor) => UserProfile,
): Pick<RunItem, 'contents' | 'withheld'> {
  const withheld = rights?.withheld ?? [];
  const items = contents.map((content) => {
    const item = toContentItem(content);
    const { display_name: name } = content.author ? profileOf(content.author) : {};
    return name === undefined || !item.author ? item : { ...item, author: { ...item.author, display_name: name } };
  });
  return {
    ...(items.length > 0 ? { contents: items } : {}),
    ...(withheld.length > 0 ? { withheld: withheld.map(toWithheldRight) } : {}),
  };
}

/** Reads the skill of a run from the text of `skill_spec`. This is used until the first agent of the run has begun. */
export function skillOf(spec: string): NonNullable<RunItem['agent_skill']> {
  const place = spec.slice(spec.indexOf(':') + 1);
  const name = place
    .split('/')
    .filter((part) => part !== 'SKILL.md')
    .at(-1);
  return { ...(name ? { name } : {}), ...(place.includes('/') ? { full_path: place } : {}) };
}

/** Returns a number of seconds as an ISO 8601 duration with at most millisecond precision: 63.52 is `PT1M3.52S`. */
export function isoDuration(seconds: number): string {
  const milliseconds = Math.max(0, Math.round(seconds * 1000));
  const hours = Math.floor(milliseconds / 3_600_000);
  const minutes = Math.floor(milliseconds / 60_000) % 60;
  const rest = (milliseconds % 60_000) / 1000;
  const parts = `${hours > 0 ? `${hours}H` : ''}${minutes > 0 ? `${minutes}M` : ''}${rest > 0 ? `${rest}S` : ''}`;
  return `PT${parts || '0S'}`;
}
