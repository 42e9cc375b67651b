/** Prevents a task from running twice at the same time. */
export interface OneAtATime {
  /**
   * Starts the work, and resolves when it has ended. If the work is already in progress, it is done once more afterwards for all calls
   * that came meanwhile. Rejects if the last of these runs of the work fails.
   */
  run(): Promise<void>;
  /** Waits for the work in progress, and ends all later starts of the work. */
  stop(): Promise<void>;
}

/**
 * Wraps work that reads the database and then applies the result. Because the work never runs twice at the same time, an older read
 * cannot override the result of a newer read.
 */
export function oneAtATime(work: () => Promise<void>): OneAtATime {
  let isStopped = false;
  let isAskedAgain = false;
  let running: Promise<void> | null = null;
  const workWhileAsked = async (): Promise<void> => {
    let failure: { readonly error: unknown } | undefined;
    while (isAskedAgain) {
      isAskedAgain = false;
      failure = undefined;
      try {
        // The inner function turns an error of `work` that is thrown at once into a rejection. Without it, `workWhileAsked` would set
        // `running` to null before the caller assigns the promise to `running`. So `running` would stay set, and the work would never
        // run again.
        await (async () => work())();
      } catch (error) {
        failure = { error };
      }
    }
    running = null;
    if (failure) throw failure.error;
  };
  const run = async (): Promise<void> => {
    if (isStopped) return;
    isAskedAgain = true;
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
