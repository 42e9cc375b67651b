/** Work that never runs twice at once. */
export interface OneAtATime {
  /** Starts the work; calls that come while it runs share one further run. Rejects where the work does. */
  run(): Promise<void>;
  /** Waits for the work that runs, and starts none after it. */
  stop(): Promise<void>;
}

/** Wraps the work so that an older look at the record never overrides a newer one, however many callers there are. */
export function oneAtATime(work: () => Promise<void>): OneAtATime {
  let isStopped = false;
  let isAskedAgain = false;
  let running: Promise<void> | null = null;
  const run = async (): Promise<void> => {
    isAskedAgain = true;
    running ??= (async () => {
      try {
        while (isAskedAgain && !isStopped) {
          isAskedAgain = false;
          await work();
        }
      } finally {
        running = null;
      }
    })();
    await running;
  };
  return {
    run,
    stop: async () => {
      isStopped = true;
      await running;
    },
  };
}
