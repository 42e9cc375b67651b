/** Work that never runs twice at once. */
export interface OneAtATime {
  /** Does it, or once more where it is being done: what is asked meanwhile shares the next time. Fails as the work does. */
  run(): Promise<void>;
  /** Begins none after the one that is being done, and waits for that. */
  stop(): Promise<void>;
}

/** An older look at the record never overrides a newer one, however many ask for it. */
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
