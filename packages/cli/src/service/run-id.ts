import type { Client } from '@runyard/client';
import type { RunItem } from '@runyard/contract/runs/runs';
import { type Context, processContext } from '../context/context.ts';
import { Failure } from '../exits/failure.ts';
import { harmlessLine } from '../terminal/harmless.ts';
import { connect } from './connect.ts';

type Listing = Pick<Client, 'listRuns'>;

/** Word that stands for the newest run that no other run started. */
export const latest = 'latest';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** `pageSize`: number of runs in one answer. `mostPages`: maximum number of requests. */
const pageSize = 20;
const mostPages = 10;
const mostCandidates = 10;
/**
 * A service process makes the id of a run with its own clock, but the database sets `created_at`. The clocks of the service process and of
 * the database may differ by this time.
 */
const clockSkewMs = 60_000;

/**
 * Returns the id of the run that a person names: by the whole id, by the beginning of the id, or by `latest`. Sends no request for a
 * whole id, and otherwise at most ten requests.
 * @throws Failure if the name fits no run or several runs
 */
export async function resolveRunId(client: Listing, name: string): Promise<string> {
  if (uuid.test(name)) return name.toLowerCase();
  if (name === latest) return await latestRun(client);
  const digits = name.replaceAll('-', '').toLowerCase();
  if (!/^[0-9a-f]+$/.test(digits) || digits.length > 32)
    throw new Failure(
      `${JSON.stringify(harmlessLine(name, 60))} is not the id of a run, its beginning, or ${latest}. List runs with: bin/runyard runs`,
    );
  const found: RunItem[] = [];
  const window = timesOf(digits);
  for await (const page of window ? pages(client, window) : []) {
    found.push(...page.filter(({ run_id }) => run_id.replaceAll('-', '').startsWith(digits)));
    if (found.length > 1) throw new Failure(ambiguous(name, found));
  }
  const [only] = found;
  if (!only) throw new Failure(`no run has an id that begins with ${name}. List runs with: bin/runyard runs`);
  return only.run_id;
}

/**
 * The first characters of an id, up to this number, encode the millisecond in which the id was made. Few runs have the same first
 * characters.
 */
const shortLength = 13;

/** Returns for each id a short beginning that no other of these ids has. Commands accept such a beginning in place of the id. */
export function shortIds(ids: readonly string[]): Map<string, string> {
  const isClear = (length: number) => new Set(ids.map((id) => id.slice(0, length))).size === new Set(ids).size;
  let length = shortLength;
  while (!isClear(length)) length += 1;
  return new Map(ids.map((id) => [id, id.slice(0, length).replace(/-$/, '')]));
}

/** Returns the context of this process, and the id of the run in an argument of its command. @throws the same errors as `resolveRunId` */
export async function contextAndRunId(name: string): Promise<[context: Context, runId: string]> {
  const context = processContext();
  return [context, await resolveRunId(connect(context), name)];
}

async function latestRun(client: Listing): Promise<string> {
  for await (const page of pages(client, {})) {
    const run = page.find(({ parent_run_id }) => parent_run_id === undefined);
    if (run) return run.run_id;
  }
  throw new Failure('there is no run yet. Start one with: bin/runyard run examples/hello.md');
}

/**
 * Returns the range of times in which a run whose id begins with these digits can have been created. A UUID of version 7 begins with
 * 48 bits for the milliseconds since 1970 (RFC 9562, 5.7). Returns `undefined` if RFC 3339 cannot write the time, because its year is
 * too large.
 */
function timesOf(digits: string): { created_after: string; created_before: string } | undefined {
  const first = Number.parseInt(digits.slice(0, 12).padEnd(12, '0'), 16) - clockSkewMs;
  const last = Number.parseInt(digits.slice(0, 12).padEnd(12, 'f'), 16) + clockSkewMs;
  const end = Date.UTC(9999, 0);
  if (first > end) return undefined;
  return {
    created_after: new Date(Math.max(first, 0)).toISOString(),
    created_before: new Date(Math.min(last, end)).toISOString(),
  };
}

/**
 * Yields pages of runs, newest first.
 * @throws Failure that asks for more characters of the id if too many runs match
 */
async function* pages(
  client: Listing,
  window: { readonly created_after?: string; readonly created_before?: string },
): AsyncGenerator<RunItem[]> {
  let cursor: string | undefined;
  for (let page = 0; page < mostPages; page += 1) {
    const { runs, page_info } = await client.listRuns({
      query: { ...window, sort_by: 'created_at', limit: pageSize, ...(cursor === undefined ? {} : { cursor }) },
    });
    yield runs;
    cursor = page_info.next_cursor;
    if (cursor === undefined) return;
  }
  throw new Failure('too many runs were created at that time; give more characters of the id');
}

function ambiguous(name: string, found: readonly RunItem[]): string {
  const lines = found
    .slice(0, mostCandidates)
    .map((item) => `  ${item.run_id}  ${item.state.padEnd(10)}  ${harmlessLine(item.title, 60)}`);
  if (found.length > mostCandidates) lines.push('  …');
  return `several runs have an id that begins with ${name}; give more characters:\n${lines.join('\n')}`;
}
