/** Reads what teams spend, and how many runs of teams and automations fail. */

import { otherValue } from '@runyard/contract/metrics/metric';
import type { GaugeName, LabelsOf } from '@runyard/contract/metrics/metrics-table';
import { type ReadGauges, type Reading, reading } from '../../platform/metrics/gauges.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, float, integer, nullable, text } from '../../platform/store/database/statement.ts';

/** Maximum number of teams, and of automations, that have their own values. All others have one value together. */
const mostShown = 50;
const mostCounted = 10_000;

const measureCosts = defineStatement({
  name: 'measure_costs_of_teams',
  text: `
    SELECT t.uid AS name, s.spent_usd::float8 AS value FROM team_spend s JOIN teams t ON t.id = s.team_id
    WHERE s.month = date_trunc('month', now() AT TIME ZONE 'UTC')::date
    ORDER BY s.spent_usd DESC LIMIT ${mostCounted}`,
  row: { name: text(), value: float },
});

const measureFailures = defineStatement({
  name: 'measure_failed_runs',
  text: `
    SELECT t.uid AS team, f.automation, count(*) AS count
    FROM (
      SELECT team_id, metadata ->> 'automation_id' AS automation FROM runs
      WHERE has_detail AND closed_at > now() - interval '1 hour' AND state IN ('FAILED', 'ERROR') ORDER BY closed_at DESC LIMIT ${mostCounted}
    ) f JOIN teams t ON t.id = f.team_id
    GROUP BY 1, 2 ORDER BY 3 DESC`,
  row: { team: text(), automation: nullable(text()), count: integer },
});

/**
 * Returns a function that reads the gauges. A team or automation that once had its own value has one in all later readings, so that its
 * series never stops at an old value.
 */
export function measureTeams(db: Queryable): ReadGauges {
  const teams = new Set<string>();
  const automations = new Set<string>();
  return async () => {
    const [costs, failures] = await Promise.all([db.query(measureCosts), db.query(measureFailures)]);
    const failed = failures.map(({ team, automation, count: value }) => ({ name: team, automation, value }));
    return [
      ...shown('runyard_team_cost_dollars', teams, costs, (team) => ({ team })),
      ...shown('runyard_team_failed_runs', teams, failed, (team) => ({ team })),
      ...shown(
        'runyard_automation_failed_runs',
        automations,
        failed.flatMap(({ automation, value }) => (automation === null ? [] : [{ name: automation, value }])),
        (automation) => ({ automation }),
      ),
    ];
  };
}

/** Adds new names to `names` while there is room. Returns a reading for each of them, and one for the sum of all others. */
function shown<N extends GaugeName>(
  metric: N,
  names: Set<string>,
  values: readonly { readonly name: string; readonly value: number }[],
  labelOf: (name: string) => LabelsOf<N>,
): Reading[] {
  for (const { name } of values) if (names.size < mostShown) names.add(name);
  const sums = new Map<string, number>([...names, otherValue].map((name) => [name, 0]));
  for (const { name, value } of values) {
    const shownName = names.has(name) ? name : otherValue;
    sums.set(shownName, (sums.get(shownName) ?? 0) + value);
  }
  return [...sums].map(([name, value]) => reading(metric, labelOf(name), value));
}
