/** The kind of item that a pool keeps ready. */
interface Pooled {
  readonly isAlive: () => boolean;
  dispose(): Promise<void>;
}

/** Keeps one sandbox ready, so that an assignment waits for neither folders nor sockets. */
export interface Pool<T extends Pooled> {
  /** Returns the ready sandbox, or makes one if none is ready. The pool is refilled a moment later. */
  take(): Promise<T>;
  close(): Promise<void>;
}

/** Opens a pool and starts to fill it. `refillMs` is the pause after a sandbox was taken, which leaves the processor to its agent. */
export function openPool<T extends Pooled>(make: () => Promise<T>, refillMs: number): Pool<T> {
  let ready: Promise<T> | undefined;
  let closed = false;
  const fill = (): void => {
    if (closed || ready !== undefined) return;
    ready = make();
    // `take` handles the rejection; until then it must not count as unhandled.
    ready.catch(() => {});
  };
  fill();
  return {
    async take() {
      const taken = ready;
      ready = undefined;
      setTimeout(fill, refillMs).unref();
      // A start that failed ahead of time may work now: a full disk, a missing folder.
      const sandbox = await taken?.catch(() => undefined);
      if (sandbox?.isAlive()) return sandbox;
      void sandbox?.dispose();
      return make();
    },
    async close() {
      closed = true;
      await ready?.then((sandbox) => sandbox.dispose()).catch(() => {});
    },
  };
}
