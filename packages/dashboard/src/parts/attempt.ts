import { useCallback, useState } from 'react';

export interface Attempts {
  /** The failure of the last attempt; undefined if the attempt succeeded or is still running. */
  readonly error: unknown;
  readonly isBusy: boolean;
  /** Runs the action and stores its failure. Returns true if the action succeeded. */
  readonly attempt: (work: () => Promise<unknown>) => Promise<boolean>;
}

/**
 * Returns a function that runs the actions of a component, and the failure of the last action. The component itself must show the failure.
 */
export function useAttempts(): Attempts {
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const attempt = useCallback(async (work: () => Promise<unknown>) => {
    setBusy(true);
    setError(undefined);
    try {
      await work();
      return true;
    } catch (failure) {
      setError(failure);
      return false;
    } finally {
      setBusy(false);
    }
  }, []);
  return { error, isBusy, attempt };
}
