/**
 * Reads events from GitHub's own log of deliveries: those that GitHub could not deliver, those that the service refused because a budget was
 * used up, and all of them if GitHub cannot reach the service. An event has the same id there, so none is handled twice.
 */
import { maxGithubEventBytes } from '@runyard/contract/limits';
import type { Logger } from 'pino';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, text, timestamp } from '../../platform/store/database/statement.ts';
import type { GithubAppKey } from '../../team/code-hosts/github-api.ts';
import { type AppRow, readApp, readAppKey } from './apps.ts';
import { githubHostOf } from './hosts.ts';
import { isUsedEvent, type ReceiveDeps, receiveEvent } from './receive.ts';

export interface PollDeps extends ReceiveDeps {
  readonly log: Logger;
}

const pollSeconds = 50;
/** The log of GitHub may show an event some time after a later one, so the last minutes are read again. */
const overlapMs = 5 * 60_000;
/** GitHub keeps the log for some days. After a longer pause, the service reads at most this much of it in one round. */
const maxPages = 20;
const perPage = 100;

/** Claims the Apps whose log is to be read. Only Apps with a claimed installation are read. */
const claim = defineStatement({
  name: 'claim_github_apps_to_poll',
  text: `
    UPDATE github_apps SET polled_at = clock_timestamp() WHERE uid IN (
      SELECT a.uid FROM github_apps a WHERE a.polled_at < clock_timestamp() - interval '${pollSeconds} seconds'
        AND EXISTS (SELECT FROM github_installations i WHERE i.app_uid = a.uid)
      ORDER BY a.polled_at LIMIT 5 FOR UPDATE SKIP LOCKED)
    RETURNING uid, polled_to`,
  row: { uid: text(), polled_to: timestamp },
});

/** Finds an App whose log is to be read. */
export const appsToPoll = defineStatement({
  name: 'find_github_apps_to_poll',
  text: `
    SELECT FROM github_apps a WHERE a.polled_at < now() - interval '${pollSeconds} seconds'
      AND EXISTS (SELECT FROM github_installations i WHERE i.app_uid = a.uid) LIMIT 1`,
  row: {},
});

const notePolled = defineStatement({
  name: 'note_polled_github_app',
  text: 'UPDATE github_apps SET polled_to = greatest(polled_to, $2::timestamptz), poll_problem = NULL WHERE uid = $1',
  row: {},
});

/** Returns a row only if the problem is a new one, so that it is logged once. */
const noteProblem = defineStatement({
  name: 'note_poll_problem_of_github_app',
  text: 'UPDATE github_apps SET poll_problem = $2 WHERE uid = $1 AND poll_problem IS DISTINCT FROM $2 RETURNING uid',
  row: { uid: text() },
});

/** An entry of the log, as far as the service reads it. */
interface Item {
  readonly id: number;
  readonly guid: string;
  readonly event: string;
  readonly deliveredMs: number;
  /** Null: the event has no repository. */
  readonly repositoryId: number | null;
  /** True if the service has answered with 202. */
  readonly isTaken: boolean;
}

const idPattern = /^[A-Za-z0-9_-]{1,100}$/;

function itemOf(value: unknown): Item | null {
  const { id, guid, event, delivered_at: at, status_code: status, repository_id: repository } = Object(value);
  const deliveredMs = Date.parse(String(at));
  if (!Number.isSafeInteger(id) || Number.isNaN(deliveredMs)) return null;
  if (!idPattern.test(String(guid)) || !idPattern.test(String(event))) return null;
  const repositoryId = Number.isSafeInteger(repository) ? repository : null;
  const isTaken = status >= 200 && status < 300;
  return { id, guid: String(guid), event: String(event), deliveredMs, repositoryId, isTaken };
}

/** Returns the entries that the service has not taken, oldest first; null if GitHub does not answer; a text if GitHub refuses. */
async function listMissed({ api, log }: PollDeps, app: GithubAppKey, sinceMs: number): Promise<Item[] | string | null> {
  const items = new Map<string, Item>();
  const taken = new Set<string>();
  let path: string | undefined = `/app/hook/deliveries?per_page=${perPage}`;
  for (let page = 0; page < maxPages && path !== undefined; page += 1) {
    const answer = await api.asApp(app, { method: 'GET', path });
    if (answer.kind === 'refused') return `GitHub refuses to show its log of deliveries (${answer.status})`;
    if (answer.kind !== 'ok') return null;
    const read = (Array.isArray(answer.body) ? answer.body : []).flatMap((each) => itemOf(each) ?? []);
    for (const item of read) {
      if (item.deliveredMs < sinceMs || !isUsedEvent(item.event)) continue;
      // One of several attempts for the same event is enough.
      if (item.isTaken) taken.add(item.guid);
      items.set(item.guid, item);
    }
    const isOver = read.length === 0 || read.some(({ deliveredMs }) => deliveredMs < sinceMs);
    const cursor = answer.next === undefined ? null : (URL.parse(answer.next)?.searchParams.get('cursor') ?? null);
    path =
      isOver || cursor === null
        ? undefined
        : `/app/hook/deliveries?${new URLSearchParams({ per_page: String(perPage), cursor })}`;
  }
  if (path !== undefined)
    log.warn(
      { app_id: app.appId, pages: maxPages },
      "GitHub's log has more events than one round reads; older events are not read",
    );
  return [...items.values()].filter(({ guid }) => !taken.has(guid)).sort((a, b) => a.deliveredMs - b.deliveredMs);
}

/** Events that this process has read from the log a short while ago, so that the overlap does not read them again. */
const seen = new Map<string, number>();
const maxSeen = 5_000;

function isNew(app: AppRow, { guid }: Item): boolean {
  const key = `${app.uid} ${guid}`;
  return !seen.has(key);
}

function noteSeen(app: AppRow, { guid, deliveredMs }: Item): void {
  if (seen.size >= maxSeen) seen.clear();
  seen.set(`${app.uid} ${guid}`, deliveredMs);
}

/** Entries that fail are read again for this time. An entry that always fails must not block the others. */
const longestAgainMs = 6 * 3_600_000;
/** Largest number of such entries in one round. */
const maxAgain = 60;
/** Largest number of such entries of one repository. Further entries wait, so that the repository does not delay other repositories. */
const maxAgainOfRepository = 20;

/** `again`: read this entry again later. `stop`: read this entry and all later ones again, because GitHub or the service is busy. */
type Handled = 'done' | 'again' | 'stop';

/** Handles one entry. An entry that has failed for long is left out. */
async function tryToHandle(deps: PollDeps, app: AppRow, key: GithubAppKey, item: Item): Promise<Handled> {
  try {
    return await handle(deps, app, key, item);
  } catch (error) {
    const isOver = Date.now() - item.deliveredMs > longestAgainMs;
    deps.log.error({ err: error, app: app.uid, delivery: item.guid, is_left_out: isOver }, 'an event of GitHub failed');
    return isOver ? 'done' : 'again';
  }
}

async function handle(deps: PollDeps, app: AppRow, key: GithubAppKey, item: Item): Promise<Handled> {
  const answer = await deps.api.asApp(key, {
    method: 'GET',
    path: `/app/hook/deliveries/${item.id}`,
    maxBytes: maxGithubEventBytes + 1024 * 1024,
  });
  if (answer.kind === 'unavailable' || answer.kind === 'limited') return 'stop';
  const payload: unknown =
    answer.kind === 'ok' ? Reflect.get(Object(Reflect.get(Object(answer.body), 'request')), 'payload') : undefined;
  if (typeof payload !== 'object' || payload === null) return 'done';
  const body = Buffer.from(JSON.stringify(payload));
  const outcome = await receiveEvent(deps, { app, name: item.event, guid: item.guid, body, payload });
  if (outcome.kind === 'busy') return 'stop';
  return outcome.kind === 'rate_limited' || outcome.kind === 'away' ? 'again' : 'done';
}

async function poll(deps: PollDeps, db: Queryable, uid: string, polledTo: string): Promise<void> {
  const app = await readApp(db, uid);
  const host = app && githubHostOf(deps.settings, app.host);
  const key = host && (await readAppKey(db, deps.vault, app, host));
  const begunMs = Date.now();
  const missed = key
    ? await listMissed(deps, key, Date.parse(polledTo) - overlapMs)
    : 'The private key of the App cannot be read. Store it again in Settings, Code hosts.';
  if (typeof missed === 'string') {
    const [isNew] = await db.query(noteProblem, [uid, missed]);
    if (isNew) deps.log.error({ app: uid, problem: missed }, "the log of a GitHub App's deliveries cannot be read");
  }
  if (!key || missed === null || typeof missed === 'string') return;
  const first = await handleAll(deps, app, key, missed);
  // The next round begins with the first event that must be read again.
  await db.query(notePolled, [uid, new Date(first?.deliveredMs ?? begunMs).toISOString()]);
}

/** Handles the entries. Returns the first that must be read again; undefined: none. */
async function handleAll(
  deps: PollDeps,
  app: AppRow,
  key: GithubAppKey,
  missed: readonly Item[],
): Promise<Item | undefined> {
  const again: Item[] = [];
  const ofRepository = new Map<number | null, number>();
  let first: Item | undefined;
  for (const item of missed) {
    if (!isNew(app, item)) continue;
    const waiting = ofRepository.get(item.repositoryId) ?? 0;
    const handled = waiting < maxAgainOfRepository ? await tryToHandle(deps, app, key, item) : 'later';
    if (handled === 'done') {
      noteSeen(app, item);
      continue;
    }
    first ??= item;
    if (handled === 'later') continue;
    again.push(item);
    ofRepository.set(item.repositoryId, waiting + 1);
    if (handled === 'stop' || again.length >= maxAgain) break;
  }
  return first;
}

/** Reads the logs of the Apps that are due. Any number of processes may do this. */
export async function pollGithub(deps: PollDeps): Promise<void> {
  for (const { uid, polled_to: polledTo } of await deps.db.query(claim)) {
    try {
      await poll(deps, deps.db, uid, polledTo);
    } catch (error) {
      deps.log.error({ err: error, app: uid }, "the log of a GitHub App's deliveries could not be read");
    }
  }
}
