import type { Metric, MetricLabel } from '@runyard/contract/metrics/metric';
import { metricsTable } from '@runyard/contract/metrics/metrics-table';

const begin = '<!-- Written by bin/generate from packages/contract/src/metrics/metrics-table.ts: from here -->';
const end = '<!-- to here -->';

function describeLabel(name: string, { description, values }: MetricLabel): string {
  const listed = Array.isArray(values)
    ? values.map((value) => `\`${value}\``).join(', ')
    : `at most ${(values as { readonly atMost: number }).atMost}`;
  return `\`${name}\`: ${description} (${listed})`;
}

const kinds = { counter: 'counter', histogram: 'histogram', gauge: 'gauge', database: 'gauge, from the database' };

/** Returns `docs/metrics.md` with the table of all metrics. `page` is its present text. */
export function renderMetricsPage(page: string): string {
  const rows = Object.entries(metricsTable).map(([name, { kind, unit, description, labels }]: [string, Metric]) => {
    const described = Object.entries(labels).map(([label, each]) => describeLabel(label, each));
    return `| \`${name}\` | ${kinds[kind]} | \`${unit}\` | ${[description, ...described].join('<br>')} |`;
  });
  const table = ['| metric | kind | unit | meaning and labels |', '|---|---|---|---|', ...rows].join('\n');
  const before = page.slice(0, page.indexOf(begin));
  const after = page.slice(page.indexOf(end));
  return `${before}${begin}\n\n${table}\n\n${after}`;
}
