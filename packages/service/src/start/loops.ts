import type { Logger } from 'pino';
import type { Loop } from '../domain.ts';

interface LoopDeps {
  readonly log: Logger;
  /** Returns x with 0 ≤ x < 1, for jitter. */
  readonly random: () => number;
}

/**
 * Starts the loops: the first rounds run at once. No loop runs twice at the same time, and a failed round is logged. Returns the
 * function that stops all of them and waits for the rounds in progress.
 */
export function startLoops(loops: readonly Loop[], deps: LoopDeps): () => Promise<void> {
  const ending = new AbortController();
  const stops = loops.map((loop) => startLoop(loop, ending.signal, deps));
  return async () => {
    ending.abort();
    await Promise.all(stops.map((stop) => stop()));
  };
}

function startLoop({ name, everyMs, work }: Loop, signal: AbortSignal, { log, random }: LoopDeps): () => Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  let current: Promise<void> = Promise.resolve();
  const round = () => {
    current = work(signal).then(
      () => undefined,
      (error: unknown) => log.error({ err: error }, `${name} failed; the next round tries again`),
    );
    void current.then(() => {
      if (!signal.aborted) timer = setTimeout(round, everyMs * (0.9 + 0.2 * random()));
    });
  };
  round();
  return async () => {
    clearTimeout(timer);
    await current;
  };
}
