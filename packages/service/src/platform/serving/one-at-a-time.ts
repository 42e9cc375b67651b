/** Prevents a task from running twice at the same time. */
export interface OneAtATime {
  /** Starts the work. All calls during a run share one further run. Rejects if the last of these runs rejects. */
  run(): Promise<void>;
  /** Waits for the work in progress, and starts none after it. */
  stop(): Promise<void>;
}

/** Wraps the work so that an older read of the database never overrides a newer one, with any number of callers. */
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
        // Without the wrapping function, work that throws before it returns a promise would end this loop before `running` is
        // assigned. Then `running` would stay set.
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
