import type { UsageRow } from '@runyard/contract/team/budgets';
import { visibleText } from '@runyard/contract/wire/visible';
import { Row, Stack, Text } from '../../parts/blocks.tsx';
import chart from '../../parts/chart.module.css';
import { dollarText } from '../../parts/format.ts';
import { daysBetween, dayText } from './report.ts';
import styles from './usage.module.css';

/** Position of the bars in the drawing. */
const [left, right, top, bottom] = [44, 1096, 14, 178];
/** Number of models that have their own colour in the chart. All other models share one colour. */
const mostSeries = 4;
const fills = [chart.ramp1, chart.ramp2, chart.ramp3, chart.ramp4, chart.ramp5] as const;
const keys = [styles.key1, styles.key2, styles.key3, styles.key4, styles.key5] as const;
const others = 'other models';

/**
 * Returns the distance between two lines of the axis, so that two to five lines reach the largest value. The distance is 1, 2 or 5 times a
 * power of ten.
 */
function stepFor(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most / 2));
  return [1, 2, 5, 10].map((each) => each * power).find((step) => most / step <= 5) ?? most;
}

/**
 * Draws the cost of each day as a bar with one colour for each model. Days after `today` have only a mark. `dailyLimit` is drawn as a
 * dashed line. A table for screen readers has the same numbers.
 */
export function CostChart({
  rows,
  from,
  to,
  today,
  dailyLimit,
}: {
  rows: readonly UsageRow[];
  from: string;
  to: string;
  today: string;
  dailyLimit: number | undefined;
}) {
  const byModel = Map.groupBy(rows, (row) => row.model_id ?? 'not known');
  const costOf = (each: readonly UsageRow[] | undefined): number =>
    (each ?? []).reduce((sum, row) => sum + row.cost_usd, 0);
  const names = [...byModel.keys()]
    .filter((name) => costOf(byModel.get(name)) > 0)
    .sort((a, b) => costOf(byModel.get(b)) - costOf(byModel.get(a)));
  const series = names.length > mostSeries ? [...names.slice(0, mostSeries), others] : names;
  const days = daysBetween(from, to);
  const costs = new Map(days.map((day) => [day, series.map(() => 0)]));
  for (const row of rows) {
    const ofDay = costs.get(row.day ?? '');
    const place = Math.min(names.indexOf(row.model_id ?? 'not known'), mostSeries);
    if (ofDay && place >= 0) ofDay[place] = (ofDay[place] ?? 0) + row.cost_usd;
  }
  const totalOf = (day: string): number => (costs.get(day) ?? []).reduce((sum, cost) => sum + cost, 0);
  const highest = days.reduce((best, day) => (totalOf(day) > totalOf(best) ? day : best), from);
  const most = Math.max(totalOf(highest), 0.01);
  const shownLimit = dailyLimit !== undefined && dailyLimit <= most * 2 ? dailyLimit : undefined;
  const ceiling = Math.max(most, shownLimit ?? 0) * 1.08;
  const step = stepFor(ceiling);
  const lines = Array.from({ length: Math.floor(ceiling / step) + 1 }, (_, index) => index * step);
  const yOf = (cost: number): number => bottom - (cost / ceiling) * (bottom - top);
  const slot = (right - left) / Math.max(1, days.length);
  const labelEach = Math.max(1, Math.ceil(days.length / 6));
  return (
    <Stack as="section" pad gap={2}>
      <Row wrap>
        <Text as="h2" grow>
          Cost by day and model
        </Text>
        <Row as="span" wrap small>
          {series.map((name, index) => (
            <span key={name} className={keys[index]}>
              {visibleText(name)}
            </span>
          ))}
        </Row>
      </Row>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls the chart of a narrow page */}
      <section className={styles.chartBox} tabIndex={0} aria-label="Chart of cost">
        <svg
          className={chart.chart}
          viewBox="0 0 1096 200"
          role="img"
          aria-label={`Cost of each day from ${dayText(from)} to ${dayText(to)} by model. The highest day is ${dayText(highest)} with ${dollarText(totalOf(highest))}. A table with the same numbers follows.`}
        >
          {lines.map((value) => (
            <g key={value}>
              <path d={`M${left} ${yOf(value)}H${right}`} className={chart.lineStroke} />
              <text x={left - 8} y={yOf(value) + 4} textAnchor="end" className={chart.ink3}>
                {step < 1 && value > 0 ? dollarText(value) : `$${value}`}
              </text>
            </g>
          ))}
          {days.map((day, index) => {
            const x = left + index * slot + slot / 7;
            const width = slot * (5 / 7);
            if (day > today)
              return <rect key={day} x={x} y={bottom - 8} width={width} height={8} className={chart.off} />;
            let base = bottom;
            return (
              <g key={day}>
                <title>{`${dayText(day)}: ${dollarText(totalOf(day))}`}</title>
                {(costs.get(day) ?? []).map((cost, place) => {
                  const height = (cost / ceiling) * (bottom - top);
                  base -= height;
                  return height === 0 ? null : (
                    <rect
                      key={series[place]}
                      x={x}
                      y={base}
                      width={width}
                      height={Math.max(0.5, height - 1)}
                      className={fills[place]}
                    />
                  );
                })}
              </g>
            );
          })}
          {days.map((day, index) =>
            index % labelEach === 0 || index === days.length - 1 ? (
              <text
                key={day}
                x={index === days.length - 1 ? right : left + (index + 0.5) * slot}
                y="194"
                textAnchor={index === days.length - 1 ? 'end' : 'middle'}
                className={chart.ink3}
              >
                {index > days.length - 1 - labelEach && index < days.length - 1 ? '' : dayText(day)}
              </text>
            ) : null,
          )}
          {shownLimit !== undefined && (
            <>
              <path d={`M${left} ${yOf(shownLimit)}H${right}`} className={chart.badStroke} strokeDasharray="4 4" />
              <text x={right} y={yOf(shownLimit) - 5} textAnchor="end" className={`${chart.bad} ${styles.halo}`}>
                {`${dollarText(shownLimit)} a day uses up the limit`}
              </text>
            </>
          )}
        </svg>
      </section>
      <Text as="table" spoken>
        <caption>Cost of each day by model in US dollars</caption>
        <thead>
          <tr>
            <th scope="col">Day in UTC</th>
            {series.map((name) => (
              <th key={name} scope="col">
                {visibleText(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {days
            .filter((day) => day <= today)
            .map((day) => (
              <tr key={day}>
                <th scope="row">{dayText(day)}</th>
                {(costs.get(day) ?? []).map((cost, place) => (
                  <td key={series[place]}>{dollarText(cost)}</td>
                ))}
              </tr>
            ))}
        </tbody>
      </Text>
    </Stack>
  );
}
