import { Cron } from 'croner';

/** The rule for the times of a schedule: a cron pattern, or equal intervals. */
export type Expression =
  | { readonly kind: 'cron'; readonly pattern: string; readonly everyHour: boolean }
  | { readonly kind: 'every'; readonly intervalMs: number };

/** `problem` is the reason why the expression is refused. It is the rest of a sentence about the expression. */
export type ParsedExpression =
  | { readonly ok: true; readonly expression: Expression }
  | { readonly ok: false; readonly problem: string };

/** The words that may replace five fields. They are from the Go library robfig/cron, whose expressions the API accepts. */
const shorthands: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};

const minIntervalMs = 60_000;
const maxIntervalMs = 366 * 24 * 3_600_000;
const unitMs = { h: 3_600_000, m: 60_000, s: 1_000 } as const;

const refuse = (problem: string): ParsedExpression => ({ ok: false, problem });

/** Parses a schedule's expression: five fields, a word such as `@daily`, or `@every` with a duration such as 1h30m. */
export function parseExpression(text: string): ParsedExpression {
  const trimmed = text.trim();
  if (/^@every\b/i.test(trimmed)) return parseEvery(trimmed.slice('@every'.length).trim());
  if (trimmed.startsWith('@')) {
    const pattern = shorthands[trimmed.toLowerCase()];
    if (pattern === undefined) return refuse(`knows the words ${Object.keys(shorthands).join(', ')} and @every`);
    return parseCron(pattern);
  }
  if (/^(CRON_)?TZ=/i.test(trimmed)) return refuse('must not name a time zone; send it as timezone');
  return parseCron(trimmed.split(/\s+/).join(' '));
}

function parseEvery(text: string): ParsedExpression {
  const parts = [...text.matchAll(/(\d{1,9})([hms])/g)];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text)
    return refuse('needs a duration in whole hours, minutes and seconds after @every, such as 1h30m or 90m');
  const intervalMs = parts.reduce((sum, [, count, unit]) => sum + Number(count) * unitMs[unit as 'h' | 'm' | 's'], 0);
  if (intervalMs < minIntervalMs) return refuse('must not be shorter than @every 1m');
  if (intervalMs > maxIntervalMs) return refuse('must not be longer than @every 8784h');
  return { ok: true, expression: { kind: 'every', intervalMs } };
}

function parseCron(pattern: string): ParsedExpression {
  const fields = pattern.split(' ');
  if (fields.length !== 5)
    return refuse(
      `must have five fields (minute, hour, day of the month, month, day of the week), not ${fields.length}`,
    );
  // Accept only characters that every cron program knows, because croner gives meanings of its own to further characters.
  if (fields.some((field) => !/^(?:[0-9*,/-]|[A-Za-z]{3})+$/.test(field)))
    return refuse('has a field with something else than numbers, names of three letters, and the characters * , - /');
  try {
    if (new Cron(pattern, { utcOffset: 0, paused: true }).nextRun(new Date(0)) === null)
      return refuse('never fires: no month has such a day');
  } catch (error) {
    return refuse(`is not a cron expression: ${reasonOf(error)}`);
  }
  return { ok: true, expression: { kind: 'cron', pattern, everyHour: /^\*(\/\d+)?$/.test(fields[1] ?? '') } };
}

const reasonOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/^CronPattern: /, '').slice(0, 300);
