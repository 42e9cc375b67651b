import type { Metric, MetricLabel } from '@runyard/contract/metrics/metric';
import { metricsTable } from '@runyard/contract/metrics/metrics-table';
import { spanAttributes, spanNames } from '@runyard/contract/metrics/trace-names';

const tables = {
  metrics: {
    begin: '<!-- Written by bin/generate from packages/contract/src/metrics/metrics-table.ts: from here -->',
    end: '<!-- to here: metrics -->',
  },
  spans: {
    begin: '<!-- Written by bin/generate from packages/contract/src/metrics/trace-names.ts: from here -->',
    end: '<!-- to here: spans -->',
  },
};

function replaceTable(page: string, of: keyof typeof tables, rows: readonly string[]): string {
  const { begin, end } = tables[of];
  const [before, after] = [page.indexOf(begin), page.indexOf(end)];
  if (before < 0 || after < before) throw new Error(`docs/metrics.md has no place for the table of ${of}`);
  return `${page.slice(0, before)}${begin}\n\n${rows.join('\n')}\n\n${page.slice(after)}`;
}

function describeLabel(name: string, { description, values }: MetricLabel): string {
  const listed = Array.isArray(values)
    ? values.map((value) => `\`${value}\``).join(', ')
    : `at most ${(values as { readonly atMost: number }).atMost}`;
  return `\`${name}\`: ${description} (${listed})`;
}

const kinds = { counter: 'counter', histogram: 'histogram', gauge: 'gauge', database: 'gauge, from the database' };

/** Returns the text of `docs/metrics.md` with new tables of all metrics and spans. `page` is the present text of the page. */
export function renderMetricsPage(page: string): string {
  const rows = Object.entries(metricsTable).map(([name, { kind, unit, description, labels }]: [string, Metric]) => {
    const described = Object.entries(labels).map(([label, each]) => describeLabel(label, each));
    return `| \`${name}\` | ${kinds[kind]} | \`${unit}\` | ${[description, ...described].join('<br>')} |`;
  });
  const spans = Object.values(spanNames).map(({ name, description }) => `| \`${name}\` | ${description} |`);
  const attributes = Object.values(spanAttributes).map((name) => `\`${name}\``);
  const withMetrics = replaceTable(page, 'metrics', [
    '| metric | kind | unit | meaning and labels |',
    '|---|---|---|---|',
    ...rows,
  ]);
  return replaceTable(withMetrics, 'spans', [
    '| span | meaning |',
    '|---|---|',
    ...spans,
    '',
    `Their attributes: ${attributes.join(', ')}.`,
  ]);
}
