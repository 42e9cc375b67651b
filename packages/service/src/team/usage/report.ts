/** Makes the report about a team's usage of models. */
import type { UsageDimension, UsageQuery, UsageReport, UsageRow, UsageThing } from '@runyard/contract/team/budgets';
import { usageDimensions } from '@runyard/contract/wire/choices';
import type { Fault } from '../../platform/fault.ts';
import { type CursorSigner, readPage } from '../../platform/store/cursor.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, float, integer, type RowOf, text } from '../../platform/store/database/statement.ts';
import type { RunActor } from '../access/actor.ts';
import { readPresentNames } from '../access/contents/content.ts';
import { readProfiles } from '../access/profiles.ts';

/** Returns the names of the team's factories, by UID. */
export type ReadFactoryNames = (teamId: string, uids: readonly string[]) => Promise<ReadonlyMap<string, string>>;

/** Value for an object that the service did not record. No UID has this value. */
const notKnown = '?';

/**
 * Sums of the whole team, or of one creator ($11, $12). A member that does not group the report is '' in every row, so one sort order works
 * for all groupings.
 */
const readRows = defineStatement({
  name: 'read_usage_report',
  text: `
    SELECT * FROM (
      SELECT (CASE WHEN $4::boolean THEN day::text ELSE '' END) COLLATE "C" AS day,
        (CASE WHEN $5::boolean THEN model_id ELSE '' END) COLLATE "C" AS model,
        (CASE WHEN $6::boolean THEN executor_kind || ' ' || executor_uid ELSE '' END) COLLATE "C" AS agent,
        (CASE WHEN $7::boolean THEN creator_kind || ' ' || creator_uid ELSE '' END) COLLATE "C" AS creator,
        (CASE WHEN $8::boolean THEN coalesce(automation_uid, '${notKnown}') ELSE '' END) COLLATE "C" AS automation,
        (CASE WHEN $9::boolean THEN coalesce(factory_uid, '${notKnown}') ELSE '' END) COLLATE "C" AS factory,
        (CASE WHEN $10::boolean THEN coalesce(environment_uid, '${notKnown}') ELSE '' END) COLLATE "C" AS environment,
        sum(requests)::bigint AS requests, sum(input_tokens)::bigint AS input_tokens, sum(output_tokens)::bigint AS output_tokens,
        sum(cache_read_tokens)::bigint AS cache_read_tokens, sum(cache_write_tokens)::bigint AS cache_write_tokens,
        sum(cost_usd)::float8 AS cost_usd, sum(unpriced_requests)::bigint AS unpriced_requests
      FROM usage_days WHERE team_id = $1 AND day BETWEEN $2::date AND $3::date
        AND ($11::text IS NULL OR (creator_kind = $11 AND creator_uid = $12))
      GROUP BY 1, 2, 3, 4, 5, 6, 7
    ) grouped
    WHERE $13::text[] IS NULL OR (day, model, agent, creator, automation, factory, environment)
      > (($13::text[])[1], ($13::text[])[2], ($13::text[])[3], ($13::text[])[4], ($13::text[])[5], ($13::text[])[6], ($13::text[])[7])
    ORDER BY day, model, agent, creator, automation, factory, environment LIMIT $14`,
  row: {
    day: text(),
    model: text(),
    agent: text(),
    creator: text(),
    automation: text(),
    factory: text(),
    environment: text(),
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

export interface ReportDeps {
  readonly db: Queryable;
  readonly signing: CursorSigner;
  readonly factoryNamesOf: ReadFactoryNames;
  now(): number;
}

/** Outcome of a report. `invalid`: 400. */
export type ReportOutcome =
  | { readonly kind: 'ok'; readonly report: Omit<UsageReport, 'scope' | 'storage'> }
  | { readonly kind: 'invalid'; readonly faults: readonly Fault[] };

const invalid = (path: string, message: string): ReportOutcome => ({ kind: 'invalid', faults: [{ path, message }] });
const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

/**
 * Returns a page with sums of a team's requests to models. `creator`: count only runs that this person or service account created; null:
 * all runs.
 */
export async function readUsageReport(
  deps: ReportDeps,
  teamId: string,
  creator: RunActor | null,
  query: UsageQuery,
): Promise<ReportOutcome> {
  const to = query.to ?? dayOf(deps.now());
  const from = query.from ?? dayOf(Date.parse(to) - (defaultDays - 1) * dayMs);
  const days = (Date.parse(to) - Date.parse(from)) / dayMs + 1;
  if (days < 1) return invalid('from', 'must not be after to');
  if (days > maxDays) return invalid('from', `must be at most ${maxDays - 1} days before to`);
  const groups = new Set<UsageDimension>(query.group_by ?? ['day']);
  const flags = usageDimensions.map((each) => groups.has(each));
  const whose = [creator?.kind ?? null, creator?.uid ?? null];
  const found = await readPage(deps.signing, query, {
    list: ['usage', teamId, creator?.kind, creator?.uid, from, to, [...groups].sort()],
    read: (after, count) => {
      const key = after === undefined ? null : JSON.parse(after.value ?? '[]');
      return deps.db.query(readRows, [teamId, from, to, ...flags, ...whose, key, count]);
    },
    positionOf: (row) => ({ value: JSON.stringify(usageDimensions.map((each) => row[each])), id: '' }),
  });
  if (!found) return invalid('cursor', 'is not a cursor of this report');
  const usage = await toUsageRows(deps, teamId, groups, found.page);
  return { kind: 'ok', report: { from, to, usage, page_info: found.page_info } };
}

/** Rounds to millionths, because sums of doubles have rounding errors. */
const rounded = (amount: number): number => Math.round(amount * 1e6) / 1e6;

/** Returns the actor of a column that groups the report; undefined if the column does not group the report. */
function actorOf(column: string): RunActor | undefined {
  if (column === '') return undefined;
  const [kind = '', uid = ''] = column.split(' ', 2);
  return { kind: kind === 'user' ? 'user' : 'service_account', uid };
}

async function toUsageRows(
  { db, factoryNamesOf }: ReportDeps,
  teamId: string,
  groups: ReadonlySet<UsageDimension>,
  rows: readonly Row[],
): Promise<UsageRow[]> {
  const uidsOf = (thing: 'automation' | 'factory' | 'environment') => [
    ...new Set(rows.map((row) => row[thing]).filter((uid) => uid !== '' && uid !== notKnown)),
  ];
  const [profileOf, automations, factories, environments] = await Promise.all([
    readProfiles(
      db,
      teamId,
      rows.flatMap(({ agent, creator }) => [actorOf(agent) ?? [], actorOf(creator) ?? []].flat()),
    ),
    readPresentNames(db, teamId, 'automation', uidsOf('automation')),
    factoryNamesOf(teamId, uidsOf('factory')),
    readPresentNames(db, teamId, 'environment', uidsOf('environment')),
  ]);
  return rows.map((row) => {
    const [agent, creator] = [actorOf(row.agent), actorOf(row.creator)];
    return {
      ...(row.day === '' ? {} : { day: row.day }),
      ...(row.model === '' ? {} : { model_id: row.model }),
      ...(agent ? { agent: profileOf(agent) } : {}),
      ...(creator ? { creator: profileOf(creator) } : {}),
      ...(groups.has('automation') ? { automation: thingOf(row.automation, automations) } : {}),
      ...(groups.has('factory') ? { factory: thingOf(row.factory, factories) } : {}),
      ...(groups.has('environment') ? { environment: thingOf(row.environment, environments) } : {}),
      requests: row.requests,
      input_tokens: row.input_tokens,
      output_tokens: row.output_tokens,
      cache_read_tokens: row.cache_read_tokens,
      cache_write_tokens: row.cache_write_tokens,
      cost_usd: rounded(row.cost_usd),
      credits: rounded(row.cost_usd * 100),
      unpriced_requests: row.unpriced_requests,
    };
  });
}

/** Returns the object by which this column groups the report. */
function thingOf(column: string, names: ReadonlyMap<string, string>): UsageThing {
  if (column === notKnown) return { kind: 'not_known' };
  if (column === '') return { kind: 'none' };
  const name = names.get(column);
  return { kind: 'known', uid: column, ...(name === undefined ? {} : { name }) };
}
