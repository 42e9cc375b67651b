/** Schedules all work of the service that does not answer a request. Each kind of work is a loop, which does its work in rounds. */
import type { Logger } from 'pino';
import type { Loop } from '../../platform/domain.ts';
import type { Database } from '../../platform/store/database/database.ts';
import type { Statement } from '../../platform/store/database/statement.ts';

export interface LoopDeps {
  readonly log: Logger;
  /** Returns x with 0 ≤ x < 1, for jitter. */
  readonly random: () => number;
  /** Makes one query that finds due work for all loops whose work a statement can find. */
  readonly makeFindDue: (due: readonly (readonly Statement[])[]) => FindDue;
  /** Time between two queries for due work, milliseconds. Default: a second. */
  readonly lookEveryMs?: number;
  /** Maximum time for which loops wait for the answer of the query for due work, milliseconds. */
  readonly slowLookMs?: number;
}

/** A loop with statements that find out whether it has work. */
type WatchedLoop = Loop & { readonly due: readonly Statement[] };

/**
 * Starts the loops: the first rounds run at once. No loop runs twice at the same time, and failed rounds are logged. Returns the function
 * that stops all of them and waits for the rounds in progress.
 *
 * The loops with `due` share one statement a second, so an idle service has less work than with a statement for each loop. If the
 * shared statement fails, or waits for a lock, all these loops run a round without it. So a fault in the table of one loop does not
 * stop the other loops.
 */
export function startLoops(loops: readonly Loop[], deps: LoopDeps): () => Promise<void> {
  const ending = new AbortController();
  const watched = loops.filter((loop): loop is WatchedLoop => loop.due !== undefined);
  const stops = [
    startWatched(watched, ending.signal, deps),
    ...loops.filter((loop) => loop.due === undefined).map((loop) => startLoop(loop, ending.signal, deps)),
  ];
  return async () => {
    ending.abort();
    await Promise.all(stops.map((stop) => stop()));
  };
}

/** Does one round. Logs its failure. */
async function doRound({ name, work }: Loop, signal: AbortSignal, { log }: LoopDeps): Promise<void> {
  try {
    await work(signal);
  } catch (error) {
    log.error({ err: error }, `${name} failed; the next round tries again`);
  }
}

const jitter = (ms: number, { random }: LoopDeps): number => ms * (0.9 + 0.2 * random());

function startLoop(loop: Loop, signal: AbortSignal, deps: LoopDeps): () => Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  let current: Promise<void> = Promise.resolve();
  const round = () => {
    current = doRound(loop, signal, deps);
    void current.then(() => {
      if (!signal.aborted) timer = setTimeout(round, jitter(loop.everyMs, deps));
    });
  };
  round();
  return async () => {
    clearTimeout(timer);
    await current;
  };
}

function startWatched(loops: readonly WatchedLoop[], signal: AbortSignal, deps: LoopDeps): () => Promise<void> {
  if (loops.length === 0) return async () => undefined;
  const { log, lookEveryMs = 1_000, slowLookMs = 2_000 } = deps;
  const findDue = deps.makeFindDue(loops.map(({ due }) => due));
  const rounds = new Map<WatchedLoop, Promise<void>>();
  /** Time of `performance.now()` at which the last round of a loop ended. */
  const endedAt = new Map<WatchedLoop, number>();

  const begin = (loop: WatchedLoop): void => {
    if (rounds.has(loop) || signal.aborted) return;
    // A round may start half a query interval too early, because the intervals between the queries vary.
    const earliest = (endedAt.get(loop) ?? Number.NEGATIVE_INFINITY) + loop.everyMs - lookEveryMs / 2;
    if (performance.now() < earliest) return;
    const round = doRound(loop, signal, deps).then(() => {
      rounds.delete(loop);
      endedAt.set(loop, performance.now());
    });
    rounds.set(loop, round);
  };

  let looking: Promise<readonly number[] | 'failed'> | undefined;
  /** Returns the answer of the query in progress, or of a new query. */
  const look = (): Promise<readonly number[] | 'failed'> => {
    looking ??= findDue()
      .catch((error: unknown) => {
        log.warn({ err: error }, 'the query for due work failed; all loops run');
        return 'failed' as const;
      })
      .finally(() => {
        looking = undefined;
      });
    return looking;
  };

  /** Timer of the pause between two queries, or of the wait for an answer. */
  let timer: NodeJS.Timeout | undefined;
  const beginDue = async (): Promise<void> => {
    const slow = new Promise<'slow'>((resolve) => {
      timer = setTimeout(resolve, slowLookMs, 'slow');
    });
    const found = await Promise.race([look(), slow]);
    clearTimeout(timer);
    for (const [place, loop] of loops.entries()) {
      if (typeof found === 'string' || found.includes(place)) begin(loop);
    }
  };

  const lookLater = (): void => {
    if (signal.aborted) return;
    timer = setTimeout(() => void beginDue().then(lookLater), jitter(lookEveryMs, deps));
  };
  for (const loop of loops) begin(loop);
  lookLater();
  return async () => {
    clearTimeout(timer);
    await Promise.all([looking, ...rounds.values()]);
  };
}

/** Returns the indexes of the loops that have work now. */
type FindDue = () => Promise<readonly number[]>;

/**
 * Makes one statement that finds the loops with work. `due`: the statements of each loop (`Loop.due`). While no work is due, the statement
 * is cheap, because it reads only indexes that are empty then.
 */
export function makeFindDue(db: Pick<Database, 'query'>, due: readonly (readonly Statement[])[]): FindDue {
  if (due.length === 0) return async () => [];
  const parts = due.map(
    (statements, place) =>
      `SELECT ${place} AS place WHERE ${statements.map(({ text }) => `EXISTS (${text})`).join(' OR ')}`,
  );
  const statement = { name: 'find_due_loops', text: parts.join('\nUNION ALL ') };
  return async () => (await db.query<{ place: number }>(statement)).map(({ place }) => place);
}
