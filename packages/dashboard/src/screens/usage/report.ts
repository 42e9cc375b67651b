/** Calculates days and sums of a usage report, and writes the report as CSV. */

import type { UsageDimension, UsageReport, UsageRow } from '@runyard/contract/team/budgets';
import { visibleText } from '@runyard/contract/wire/visible';

const dayMs = 86_400_000;

/** Returns the day in UTC: `2026-11-25`. */
export const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

/** Returns the day that is this number of days after another day. */
export const dayAfter = (day: string, count: number): string => dayOf(Date.parse(day) + count * dayMs);

/** Returns the first and the last day of the month of a day. */
export const monthOf = (day: string): readonly [first: string, last: string] => {
  const [year = 0, month = 1] = day.split('-').map(Number);
  return [`${day.slice(0, 7)}-01`, dayOf(Date.UTC(year, month, 0))];
};

/** Returns all days from the first day to the last day. */
export function daysBetween(first: string, last: string): string[] {
  const days: string[] = [];
  for (let day = first; day <= last; day = dayAfter(day, 1)) days.push(day);
  return days;
}

const dayFormat = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });
const monthFormat = new Intl.DateTimeFormat('en-GB', { month: 'long', timeZone: 'UTC' });
/** Returns a day in UTC as `25 Nov`. */
export const dayText = (day: string): string => dayFormat.format(Date.parse(day));
/** Returns the name of a month. The argument is a day or a month in UTC. */
export const monthText = (day: string): string => monthFormat.format(Date.parse(`${day.slice(0, 7)}-01`));

const compact = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });
/** Returns a count of tokens as `41.2 M`. */
export const tokensText = (count: number): string => compact.format(count).replace(/(?<=\d)(?=[A-Z]$)/, ' ');

/** Maximum number of pages of one report that the screen reads. */
const mostPages = 10;

/** Reads all pages of a report; returns undefined if the report has more pages than the screen reads. */
export async function readAll(
  read: (cursor: string | undefined) => Promise<UsageReport>,
): Promise<UsageReport | undefined> {
  const usage: UsageRow[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < mostPages; page += 1) {
    const report = await read(cursor);
    usage.push(...report.usage);
    if (!report.page_info.has_next_page) return { ...report, usage };
    cursor = report.page_info.next_cursor;
  }
  return undefined;
}

/** Returns the number of tokens that the models read, with those from caches. */
export const tokensRead = (row: UsageRow): number => row.input_tokens + row.cache_read_tokens + row.cache_write_tokens;

/** Returns the percentage of the input tokens that came from a cache; undefined if there were no input tokens. */
export function cacheShare(rows: readonly UsageRow[]): number | undefined {
  const readTokens = rows.reduce((sum, row) => sum + tokensRead(row), 0);
  if (readTokens === 0) return undefined;
  return Math.round((rows.reduce((sum, row) => sum + row.cache_read_tokens, 0) / readTokens) * 100);
}

/** The group of a row: its key, its name, and its kind. */
export interface Group {
  readonly key: string;
  readonly name: string;
  readonly kind?: string;
}

/**
 * Returns the group of a row if the report is grouped by `by`. Two groups have no UID. For `environment`, for example, the groups are
 * usage without an environment, and usage for which the service has not recorded the environment.
 */
export function groupOf(row: UsageRow, by: UsageDimension): Group {
  switch (by) {
    case 'day':
      return { key: row.day ?? '', name: dayText(row.day ?? '') };
    case 'model':
      return { key: row.model_id ?? '', name: visibleText(row.model_id ?? '') };
    case 'agent':
    case 'creator': {
      const { uid = '', type, display_name: name = uid } = row[by] ?? {};
      const kind = type === 'user' ? 'person' : type === 'service_account' ? 'service account' : undefined;
      return { key: uid, name: visibleText(name), ...(kind === undefined ? {} : { kind }) };
    }
    default: {
      const { kind, uid = '', name = uid } = row[by] ?? { kind: 'not_known' };
      if (kind === 'known') return { key: uid, name: visibleText(name) };
      return kind === 'none' ? { key: '', name: `no ${by}` } : { key: '?', name: 'not known' };
    }
  }
}

/** Returns a value as a field of CSV (RFC 4180). Adds an apostrophe before a text that a spreadsheet would take for a formula. */
const csvField = (value: string | number): string => {
  const text = typeof value === 'number' ? String(value) : value.replace(/^[=+\-@\t\r]/, "'$&");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/** Returns the rows as CSV. */
export function csvOf(rows: readonly UsageRow[], by: UsageDimension): string {
  const sums = [
    'requests',
    'input_tokens',
    'output_tokens',
    'cache_read_tokens',
    'cache_write_tokens',
    'cost_usd',
    'unpriced_requests',
  ] as const;
  const lines = rows.map((row) => {
    const { key, name } = groupOf(row, by);
    return [key, name, ...sums.map((sum) => row[sum])].map(csvField).join(',');
  });
  return [[by, 'name', ...sums].join(','), ...lines].map((line) => `${line}\r\n`).join('');
}
