import type { UsageDimension, UsageRow } from '@runyard/contract/team/budgets';
import { countText, dollarText, numberText } from '../../parts/format.ts';
import { cacheShare, groupOf, tokensRead, tokensText } from './report.ts';

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
    <table className="tbl rows-t" aria-label={`Cost by ${what.toLowerCase()}`}>
      <thead>
        <tr>
          <th>{what}</th>
          {by !== 'day' && <th className="w140 hide-l">Trend</th>}
          <th className="w108 num">Requests</th>
          <th className="w108 num">Tokens</th>
          <th className="w108 num">From cache</th>
          <th className={`w180 num ${by === 'day' ? '' : 'sort'}`} aria-sort={by === 'day' ? undefined : 'descending'}>
            Cost
          </th>
          <th className="w200">
            <span className="sr">Share of the largest</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => {
          const { key, name, kind } = groupOf(row, by);
          const share = cacheShare([row]);
          return (
            <tr key={key}>
              <td>
                <span className={key === '' || key === '?' ? 'dim' : 'md'}>{name}</span>
                {kind !== undefined && <span className="dim">{` ${kind}`}</span>}
              </td>
              {by !== 'day' && (
                <td className="hide-l">{ofGroup && <Trend rows={ofGroup.get(key) ?? []} days={days} />}</td>
              )}
              <td className="num">{numberText(row.requests)}</td>
              <td className="num">{tokensText(tokensRead(row) + row.output_tokens)}</td>
              <td className="num">{share === undefined ? '–' : `${share}%`}</td>
              <td className="num md mk">
                {row.unpriced_requests > 0 && (
                  <span
                    className="waitc"
                    title={`${countText(row.unpriced_requests, 'request')} without a known price`}
                  >
                    {row.cost_usd === 0 ? 'not known' : 'more than '}
                  </span>
                )}
                {(row.unpriced_requests === 0 || row.cost_usd > 0) && dollarText(row.cost_usd)}
              </td>
              <td>
                <svg className="meter" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
                  <rect width={(row.cost_usd / most) * 100} height="6" className="f-c2" />
                </svg>
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
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
      <path d={`M${path.join('L')}`} className="k-ink3" strokeWidth="1.3" />
    </svg>
  );
}
