import type { UsageDimension, UsageRow } from '@runyard/contract/team/budgets';
import { Text } from '../../parts/blocks.tsx';
import chart from '../../parts/chart.module.css';
import { countText, dollarText, numberText } from '../../parts/format.ts';
import { Cell, Table } from '../../parts/table.tsx';
import { cacheShare, groupOf, tokensRead, tokensText } from './report.ts';
import styles from './usage.module.css';

/** Maximum number of points in the drawing of a trend. If there are more days, a point is the mean of neighbouring days. */
const mostPoints = 20;

/**
 * Shows the sums of each group, with the most expensive group at the top. `daily` has the sums of each group for each day, from which the
 * trends are drawn.
 */
export function UsageTable({
  rows,
  by,
  what,
  daily,
  days,
}: {
  rows: readonly UsageRow[];
  by: UsageDimension;
  /** Heading of the first column. */
  what: string;
  daily: readonly UsageRow[] | undefined;
  days: readonly string[];
}) {
  const most = Math.max(...rows.map((row) => row.cost_usd), 0.000_001);
  const ofGroup = daily && Map.groupBy(daily, (row) => groupOf(row, by).key);
  return (
    <Table
      bare
      stacked
      className={styles.rows}
      aria-label={`Cost by ${what.toLowerCase()}`}
      columns={[
        { name: what },
        ...(by === 'day' ? [] : [{ name: 'Trend', width: 140, onlyWide: true }]),
        { name: 'Requests', width: 108, number: true },
        { name: 'Tokens', width: 108, number: true },
        { name: 'From cache', width: 108, number: true },
        {
          name: 'Cost',
          width: 180,
          number: true,
          isSorted: by !== 'day',
          className: by === 'day' ? undefined : styles.sorted,
        },
        { name: 'Share of the largest', width: 200, spoken: true },
      ]}
    >
      {rows.map((row) => {
        const { key, name, kind } = groupOf(row, by);
        const share = cacheShare([row]);
        return (
          <tr key={key}>
            <td>
              {key === '' || key === '?' ? <Text tone="dim">{name}</Text> : <Text medium>{name}</Text>}
              {kind !== undefined && <Text tone="dim">{` ${kind}`}</Text>}
            </td>
            {by !== 'day' && <Cell onlyWide>{ofGroup && <Trend rows={ofGroup.get(key) ?? []} days={days} />}</Cell>}
            <Cell number>{numberText(row.requests)}</Cell>
            <Cell number>{tokensText(tokensRead(row) + row.output_tokens)}</Cell>
            <Cell number>{share === undefined ? '–' : `${share}%`}</Cell>
            <Cell number medium className={styles.kept}>
              {row.unpriced_requests > 0 && (
                <Text tone="wait" title={`${countText(row.unpriced_requests, 'request')} without a known price`}>
                  {row.cost_usd === 0 ? 'not known' : 'more than '}
                </Text>
              )}
              {(row.unpriced_requests === 0 || row.cost_usd > 0) && dollarText(row.cost_usd)}
            </Cell>
            <td>
              <svg className={chart.meter} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
                <rect width={(row.cost_usd / most) * 100} height="6" className={chart.ramp2} />
              </svg>
            </td>
          </tr>
        );
      })}
    </Table>
  );
}

/** Draws the cost of one group over the days, beside its numbers. */
function Trend({ rows, days }: { rows: readonly UsageRow[]; days: readonly string[] }) {
  const each = Math.max(1, Math.ceil(days.length / mostPoints));
  const points = Array.from({ length: Math.ceil(days.length / each) }, () => 0);
  const daysOf = (place: number): number => Math.min(each, days.length - place * each);
  const places = new Map(days.map((day, index) => [day, Math.floor(index / each)]));
  for (const row of rows) {
    const place = places.get(row.day ?? '');
    if (place !== undefined) points[place] = (points[place] ?? 0) + row.cost_usd / daysOf(place);
  }
  const most = Math.max(...points, 0.000_001);
  const stepX = 95 / Math.max(1, points.length - 1);
  const path = points.map((cost, index) => `${(index * stepX).toFixed(1)} ${(18 - (cost / most) * 15).toFixed(1)}`);
  return (
    <svg width="96" height="20" viewBox="0 0 96 20" aria-hidden="true">
      <path d={`M${path.join('L')}`} className={chart.ink3Stroke} strokeWidth="1.3" />
    </svg>
  );
}
