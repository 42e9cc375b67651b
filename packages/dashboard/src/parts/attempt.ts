import { useCallback, useState } from 'react';

export interface Attempts {
  /** The failure of the last attempt; undefined: it succeeded or is still running. */
  readonly error: unknown;
  readonly isBusy: boolean;
  /** Does the work and keeps its failure. Returns whether it succeeded. */
  readonly attempt: (work: () => Promise<unknown>) => Promise<boolean>;
}

/** Returns the state of a component's actions; the component shows their failures. */
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
