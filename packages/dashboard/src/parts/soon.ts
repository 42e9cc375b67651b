import { useCallback, useEffect, useRef } from 'react';

/**
 * Returns a function that calls `run` after `ms` milliseconds. Further calls of the function in this time have no effect. Unmounting the
 * component cancels the call of `run`.
 */
export function useSoon(run: () => void, ms: number): () => void {
  const latest = useRef(run);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => {
    latest.current = run;
  });
  useEffect(
    () => () => {
      clearTimeout(timer.current);
      timer.current = undefined;
    },
    [],
  );
  return useCallback(() => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      latest.current();
    }, ms);
  }, [ms]);
}
