import { useSyncExternalStore } from 'react';
import { durationText, exactText, relativeText } from './format.ts';

const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** Returns the current time in milliseconds, and renders again each second. The whole page shares one timer. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => now);

/**
 * Returns the number of whole steps of `stepMs` milliseconds in the current time. The component renders again only when this number
 * changes.
 */
const useNowBy = (stepMs: number): number => useSyncExternalStore(subscribe, () => Math.floor(now / stepMs) * stepMs);

/** Shows how long ago a time is. The tooltip has the exact time. */
export function Ago({ time, className }: { time: string | undefined; className?: string }) {
  const at = Date.parse(time ?? '');
  const isRecent = Math.abs(Date.now() - at) < 120_000;
  const present = useNowBy(isRecent ? 1000 : 30_000);
  if (Number.isNaN(at)) return null;
  return (
    <time dateTime={time} title={exactText(at)} className={className}>
      {relativeText(at, Math.max(present, isRecent ? Date.now() : present))}
    </time>
  );
}

/** Shows the duration from `from` to `to`. If `to` is undefined, shows the duration until now. */
export function Lasting({ from, to }: { from: string | undefined; to: string | undefined }) {
  const end = to === undefined ? undefined : Date.parse(to);
  const present = useSyncExternalStore(subscribe, () => (end === undefined ? Math.floor(now / 1000) * 1000 : 0));
  if (from === undefined) return null;
  return <>{durationText(Math.max(0, (end ?? Math.max(present, Date.parse(from))) - Date.parse(from)))}</>;
}
