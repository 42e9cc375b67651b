/** Prevents that a task runs twice at once. */
export interface OneAtATime {
  /** Starts the work; calls while it runs share one further run. Rejects if the work does. */
  run(): Promise<void>;
  /** Waits for the work in progress, and starts none after it. */
  stop(): Promise<void>;
}

/** Wraps the work so that an older read of the database never overrides a newer one, however many callers there are. */
export function oneAtATime(work: () => Promise<void>): OneAtATime {
  let isStopped = false;
  let isAskedAgain = false;
  let running: Promise<void> | null = null;
  const workWhileAsked = async (): Promise<void> => {
    try {
      while (isAskedAgain) {
        isAskedAgain = false;
        await work();
      }
    } finally {
      running = null;
    }
  };
  const run = async (): Promise<void> => {
    if (isStopped) return;
    isAskedAgain = true;
    // The first step of the work ends later than this assignment, because it is awaited: `running` is never a promise that has ended.
    running ??= workWhileAsked();
    await running;
  };
  return {
    run,
    stop: async () => {
      isStopped = true;
      isAskedAgain = false;
      await running;
    },
  };
}
