/** The report of a team's use of models, by day, model, agent and creator. */
import type { UsageDimension, UsageQuery, UsageReport, UsageRow } from '@runyard/contract/team/budgets';
import type { Fault } from '../../platform/fault.ts';
import { type CursorSigner, listIdentity, readCursor, writeCursor } from '../../platform/store/cursor.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  defineStatement,
  float,
  integer,
  json,
  nullable,
  type RowOf,
  text,
} from '../../platform/store/database/statement.ts';
import type { RunActor } from '../access/actor.ts';
import { readProfiles } from '../access/profiles.ts';

/** A member that does not group the report is '' in every row, so one order serves all groupings. */
const readRows = defineStatement({
  name: 'read_usage_report',
  text: `
    SELECT * FROM (
      SELECT (CASE WHEN $4::boolean THEN day::text ELSE '' END) COLLATE "C" AS day,
        (CASE WHEN $5::boolean THEN model_id ELSE '' END) COLLATE "C" AS model,
        (CASE WHEN $6::boolean THEN executor_kind || ' ' || executor_uid ELSE '' END) COLLATE "C" AS agent,
        (CASE WHEN $7::boolean THEN creator_kind || ' ' || creator_uid ELSE '' END) COLLATE "C" AS creator,
        CASE WHEN $6::boolean THEN jsonb_build_object('kind', min(executor_kind), 'uid', min(executor_uid)) END AS agent_actor,
        CASE WHEN $7::boolean THEN jsonb_build_object('kind', min(creator_kind), 'uid', min(creator_uid)) END AS creator_actor,
        sum(requests)::bigint AS requests, sum(input_tokens)::bigint AS input_tokens, sum(output_tokens)::bigint AS output_tokens,
        sum(cache_read_tokens)::bigint AS cache_read_tokens, sum(cache_write_tokens)::bigint AS cache_write_tokens,
        sum(cost_usd)::float8 AS cost_usd, sum(unpriced_requests)::bigint AS unpriced_requests
      FROM usage_days WHERE team_id = $1 AND day BETWEEN $2::date AND $3::date
      GROUP BY 1, 2, 3, 4
    ) grouped
    WHERE $8::text[] IS NULL OR (day, model, agent, creator) > (($8::text[])[1], ($8::text[])[2], ($8::text[])[3], ($8::text[])[4])
    ORDER BY day, model, agent, creator LIMIT $9`,
  row: {
    day: text(),
    model: text(),
    agent: text(),
    creator: text(),
    agent_actor: nullable(json<RunActor>()),
    creator_actor: nullable(json<RunActor>()),
    requests: integer,
    input_tokens: integer,
    output_tokens: integer,
    cache_read_tokens: integer,
    cache_write_tokens: integer,
    cost_usd: float,
    unpriced_requests: integer,
  },
});

type Row = RowOf<typeof readRows>;

const dayMs = 24 * 3600 * 1000;
const maxDays = 366;
const defaultDays = 30;

/** Outcome of a report. `invalid`: 400. */
export type ReportOutcome =
  | { readonly kind: 'ok'; readonly report: Omit<UsageReport, 'storage'> }
  | { readonly kind: 'invalid'; readonly faults: readonly Fault[] };

const invalid = (path: string, message: string): ReportOutcome => ({ kind: 'invalid', faults: [{ path, message }] });
const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

/** Returns a page of the sums of a team's requests to models. */
export async function readUsageReport(
  deps: { readonly db: Queryable; readonly signing: CursorSigner; now(): number },
  teamId: string,
  query: UsageQuery,
): Promise<ReportOutcome> {
  const to = query.to ?? dayOf(deps.now());
  const from = query.from ?? dayOf(Date.parse(to) - (defaultDays - 1) * dayMs);
  const days = (Date.parse(to) - Date.parse(from)) / dayMs + 1;
  if (days < 1) return invalid('from', 'must not be after to');
  if (days > maxDays) return invalid('from', `must be at most ${maxDays - 1} days before to`);
  const groups = new Set<UsageDimension>(query.group_by ?? ['day']);
  const identity = listIdentity(['usage', teamId, from, to, [...groups].sort()]);
  let after: readonly string[] | null = null;
  if (query.cursor !== undefined) {
    const read = readCursor(deps.signing, identity, query.cursor);
    if (!read.ok) return invalid('cursor', 'is not a cursor of this report');
    after = JSON.parse(read.position.value ?? '[]');
  }
  const flags = (['day', 'model', 'agent', 'creator'] as const).map((each) => groups.has(each));
  const rows = await deps.db.query(readRows, [teamId, from, to, ...flags, after, query.limit + 1]);
  const page = rows.slice(0, query.limit);
  const last = page.at(-1);
  const hasNext = rows.length > query.limit && last !== undefined;
  return {
    kind: 'ok',
    report: {
      from,
      to,
      usage: await toUsageRows(deps.db, teamId, page),
      page_info: {
        has_next_page: hasNext,
        ...(hasNext
          ? { next_cursor: writeCursor(deps.signing, identity, { value: JSON.stringify(keyOf(last)), id: '' }) }
          : {}),
      },
    },
  };
}

const keyOf = ({ day, model, agent, creator }: Row): string[] => [day, model, agent, creator];

/** Rounds to millionths, because sums of doubles have rounding errors. */
const rounded = (amount: number): number => Math.round(amount * 1e6) / 1e6;

async function toUsageRows(db: Queryable, teamId: string, rows: readonly Row[]): Promise<UsageRow[]> {
  const actors = rows.flatMap(({ agent_actor, creator_actor }) => [agent_actor ?? [], creator_actor ?? []].flat());
  const profileOf = await readProfiles(db, teamId, actors);
  return rows.map((row) => ({
    ...(row.day === '' ? {} : { day: row.day }),
    ...(row.model === '' ? {} : { model_id: row.model }),
    ...(row.agent_actor ? { agent: profileOf(row.agent_actor) } : {}),
    ...(row.creator_actor ? { creator: profileOf(row.creator_actor) } : {}),
    requests: row.requests,
    input_tokens: row.input_tokens,
    output_tokens: row.output_tokens,
    cache_read_tokens: row.cache_read_tokens,
    cache_write_tokens: row.cache_write_tokens,
    cost_usd: rounded(row.cost_usd),
    credits: rounded(row.cost_usd * 100),
    unpriced_requests: row.unpriced_requests,
  }));
}
