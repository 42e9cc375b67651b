import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '@runyard/system/backoff';

/** Answers questions to the database. Questions that wait at the same time share one query. */
export interface SharedReads<Q, A> {
  /** Answers a question. Never fails: it retries while the database does not answer. */
  ask(question: Q): Promise<A>;
  close(): void;
}

export interface SharedReadsOptions<Q, A> {
  /** Largest number of questions in one query. */
  readonly limit: number;
  /** Returns the name of a question. Equal questions have equal names. */
  nameOf(question: Q): string;
  /** Runs one query. Returns the answers in the order of the questions. */
  read(questions: readonly Q[]): Promise<readonly A[]>;
  onFailure(error: unknown): void;
}

const maxDelayMs = 2_000;

interface Waiting<Q, A> {
  readonly question: Q;
  readonly answer: PromiseWithResolvers<A>;
}

/**
 * Runs one query at a time. The next query answers all questions that arrived meanwhile, and equal questions only once. So any number of
 * streams use one connection of the pool, and each question costs less when many arrive at once.
 */
export function sharedReads<Q, A>(options: SharedReadsOptions<Q, A>): SharedReads<Q, A> {
  const waiting = new Map<string, Waiting<Q, A>>();
  let isBusy = false;
  let isClosed = false;

  const readWithPatience = async (questions: readonly Q[]): Promise<readonly A[]> => {
    for (let tries = 0; ; tries += 1) {
      try {
        return await options.read(questions);
      } catch (error) {
        if (isClosed) return [];
        options.onFailure(error);
        await delay(backoffMs({ firstMs: 50, longestMs: maxDelayMs }, tries + 1), undefined, { ref: false });
      }
    }
  };

  const drain = async () => {
    isBusy = true;
    while (waiting.size > 0 && !isClosed) {
      const batch = [...waiting.entries().take(options.limit)];
      for (const [name] of batch) waiting.delete(name);
      const answers = await readWithPatience(batch.map(([, { question }]) => question));
      for (const [index, [, { answer }]] of batch.entries()) {
        const value = answers[index];
        if (value !== undefined) answer.resolve(value);
      }
    }
    isBusy = false;
  };

  return {
    ask: (question) => {
      const name = options.nameOf(question);
      const known = waiting.get(name);
      if (known) return known.answer.promise;
      const answer = Promise.withResolvers<A>();
      waiting.set(name, { question, answer });
      if (!isBusy) void drain();
      return answer.promise;
    },
    close: () => {
      isClosed = true;
      waiting.clear();
    },
  };
}
