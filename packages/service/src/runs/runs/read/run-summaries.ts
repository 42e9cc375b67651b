/** Builds the summaries of runs for the rows of a list. */

import { isTerminal } from '@runyard/contract/runs/run-states';
import { type RunItem, summaryArtifacts, summaryLength } from '@runyard/contract/runs/runs';
import { shorten } from '@runyard/contract/wire/shorten';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, integer, nullable, text, uuid } from '../../../platform/store/database/statement.ts';
import { readNamesOfContents, storedRevisionOf } from '../../../team/access/contents/content.ts';
import { readProfiles } from '../../../team/access/profiles.ts';
import { type RunUsage, usageOfRuns } from '../../../team/usage/usage-of-run.ts';
import { isRunTypeCancellable } from '../../executions/cancel/cancel.ts';
import type { OpenRequest } from '../../executions/idle/debug-window.ts';
import { hasSandbox } from '../../executions/phases.ts';
import { readWaits } from '../../executions/waiting/read-waits.ts';
import { readFirstArtifactItems } from '../../files/artifacts/read.ts';
import { type RunValues, selectOf } from './columns.ts';
import {
  errorCategoryOf,
  factoryOf,
  isoDuration,
  type ReadContext,
  scheduleOf,
  skillOf,
  statusOf,
} from './run-items.ts';
import { type RunRow, shownColumns } from './run-row.ts';

type Question = Pick<OpenRequest, 'request_id' | 'kind' | 'title' | 'asked_at'>;

/** The data of a run and its current execution that a summary shows. */
export type SummaryRow = RunValues<(typeof shownColumns)[number] | 'contents' | 'harness' | 'environment_id'> &
  Pick<RunRow, 'phase' | 'seconds' | 'debug_until' | 'error_detail'> & { readonly question: Question | null };

/**
 * SQL of the columns of `SummaryRow`, for the FROM clause `fromRuns`. Leaves out the action of a question, because the action may have
 * megabytes.
 */
export const summarySelect = `
  ${selectOf([...shownColumns, 'harness', 'environment_id'])}, NULL AS error_detail,
    jsonb_path_query_array(q.contents, '$[*] ? (@.kind == "automation" || @.kind == "definition")') AS contents,
    e.phase, e.seconds, e.debug_until,
    (SELECT jsonb_build_object('request_id', o->'request_id', 'kind', o->'kind', 'title', left(o->>'title', ${summaryLength + 1}), 'asked_at', o->'asked_at')
      FROM coalesce(r.open_request, e.debug_request) o WHERE o IS NOT NULL) AS question`;

const readEnvironments = defineStatement({
  name: 'read_names_of_environments',
  text: `SELECT uid, config->>'name' AS name FROM environments WHERE team_id = $1 AND uid = ANY($2::text[])`,
  row: { uid: text(), name: nullable(text()) },
});

const countChildren = defineStatement({
  name: 'count_child_runs',
  text: `
    SELECT p.id, c.total, c.live FROM unnest($1::uuid[]) p(id) CROSS JOIN LATERAL (
      SELECT count(*)::int AS total, count(*) FILTER (WHERE state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED'))::int AS live
      FROM (SELECT state FROM runs WHERE parent_run_id = p.id LIMIT 1000) child
    ) c WHERE c.total > 0`,
  row: { id: uuid, total: integer, live: integer },
});

/** Returns the summaries of the rows, in the same order. The number of queries does not depend on the number of rows. */
export async function toRunSummaries(
  db: Queryable,
  { teamId, baseUrl }: ReadContext,
  rows: readonly SummaryRow[],
): Promise<RunItem[]> {
  if (rows.length === 0) return [];
  const ids = rows.map(({ id }) => id);
  const actors = rows.flatMap((row) => [
    { kind: row.creator_kind, uid: row.creator_uid },
    { kind: row.executor_kind, uid: row.executor_uid },
  ]);
  const mayWait = rows.filter(({ state, phase }) => !isTerminal(state) || phase === 'idle').map(({ id }) => id);
  const environmentIds = [...new Set(rows.flatMap((row) => row.environment_id ?? []))];
  const automations = rows.flatMap(automationOf);
  const [artifacts, usage, profileOf, waits, environments, nameOf, children] = await Promise.all([
    readFirstArtifactItems(db, ids, summaryArtifacts),
    usageOfRuns(db, ids),
    readProfiles(db, teamId, actors),
    readWaits(db, teamId, mayWait),
    environmentIds.length === 0 ? [] : db.query(readEnvironments, [teamId, environmentIds]),
    readNamesOfContents(db, teamId, automations),
    db.query(countChildren, [ids]),
  ]);
  const environmentNames = new Map(environments.map(({ uid, name }) => [uid, name]));
  const childrenOf = new Map(children.map(({ id, ...counts }) => [id, counts]));
  const shortProfileOf = (kind: RunRow['creator_kind'], uid: string) => {
    const { email: _, ...profile } = profileOf({ kind, uid });
    return profile;
  };
  return rows.map((row): RunItem => {
    const { status_message: status } = statusOf(row, waits.get(row.id));
    const [automation] = automationOf(row);
    const requestUsage = usage.get(row.id);
    const childRuns = childrenOf.get(row.id);
    return {
      run_id: row.id,
      task_id: row.id,
      title: row.title,
      state: row.state,
      created_at: row.created_at,
      updated_at: row.updated_at,
      started_at: row.started_at,
      finished_at: row.ended_at,
      run_time: isoDuration(row.seconds ?? 0),
      ...(status ? { status_message: { ...status, message: shorten(status.message, summaryLength) } } : {}),
      ...(row.question ? { blocked_on: { ...row.question, title: shorten(row.question.title, summaryLength) } } : {}),
      ...errorCategoryOf(row),
      source: row.source,
      creator: shortProfileOf(row.creator_kind, row.creator_uid),
      executor: shortProfileOf(row.executor_kind, row.executor_uid),
      ...scheduleOf(row),
      ...(automation ? { automation: named('automation_id', automation.uid, nameOf(automation)) } : {}),
      ...factoryOf(row),
      model_id: row.model_id,
      harness: row.harness,
      ...(row.skill_spec ? { agent_skill: skillOf(row.skill_spec) } : {}),
      ...(row.environment_id === null
        ? {}
        : { environment: named('environment_id', row.environment_id, environmentNames.get(row.environment_id)) }),
      execution_location: row.execution_location,
      ...(row.parent_run_id ? { parent_run_id: row.parent_run_id } : {}),
      root_run_id: row.ancestor_ids.at(-1) ?? row.id,
      ...(childRuns ? { child_runs: childRuns } : {}),
      is_sandbox_running: hasSandbox(row.phase),
      is_run_type_cancellable: isRunTypeCancellable(row),
      session_link: `${baseUrl}/runs/${row.id}`,
      artifacts: artifacts.get(row.id) ?? [],
      ...(requestUsage ? { request_usage: shortUsageOf(requestUsage) } : {}),
    };
  });
}

/** Returns an object with the revision of the automation that started the run; an empty object if no automation started it. */
const automationOf = ({ contents }: SummaryRow) =>
  contents.flatMap(storedRevisionOf).filter(({ kind }) => kind === 'automation');

/** Returns a reference to an object by its id, with the name of the object if it is known. */
const named = <Member extends string>(member: Member, uid: string, name: string | null | undefined) =>
  ({ [member]: uid, ...(name ? { name } : {}) }) as { readonly [M in Member]: string } & { readonly name?: string };

const shortUsageOf = ({ total_tokens, inference_cost, inference_cost_usd }: RunUsage): RunUsage => ({
  total_tokens,
  ...(inference_cost === undefined ? {} : { inference_cost }),
  ...(inference_cost_usd === undefined ? {} : { inference_cost_usd }),
});
