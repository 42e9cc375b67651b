import { type ClipboardEvent, type ReactNode, useSyncExternalStore } from 'react';
import { durationText, exactText, pastText, relativeText } from './format.ts';
import { type Look, looked } from './look.ts';
import styles from './time.module.css';

const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  // Without a timer, `now` is the time at which the last component stopped to use it.
  if (timer === undefined) now = Date.now();
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

/**
 * Lets the focus reach a time. Times in the conversation, in a link and in a row with a link are left out: there are many of them, and the
 * page behind the link has the time too.
 */
function makeReachable(element: HTMLElement | null): void {
  if (element !== null && !element.closest('a, button, summary, [role="log"], tr:has(a)')) element.tabIndex = 0;
}

/** Copies the exact time, unless the selection has more than this time. */
function copyExact(event: ClipboardEvent<HTMLElement>): void {
  const { title, textContent } = event.currentTarget;
  const selected = getSelection()?.toString().trim() ?? '';
  if (selected !== '' && selected !== textContent) return;
  event.clipboardData.setData('text/plain', title);
  event.preventDefault();
}

/** Shows `children` as the text of a time in milliseconds. Hover, focus and copy give the exact time. */
export function Exact({ at, children, ...looks }: Look & { at: number; children: ReactNode }) {
  return (
    <time
      ref={makeReachable}
      dateTime={new Date(at).toISOString()}
      title={exactText(at)}
      {...looked(looks, styles.exact)}
      onCopy={copyExact}
    >
      {children}
    </time>
  );
}

/** Shows how far away a time is: `26 min`. With `isPast`, the words end a sentence: `26 min ago`. */
export function Ago({
  time,
  isPast = false,
  ...looks
}: Look & {
  time: string | null | undefined;
  isPast?: boolean;
}) {
  const at = Date.parse(time ?? '');
  const isRecent = Math.abs(Date.now() - at) < 120_000;
  const present = useNowBy(isRecent ? 1000 : 30_000);
  if (Number.isNaN(at)) return null;
  const now = Math.max(present, isRecent ? Date.now() : present);
  return (
    <Exact at={at} {...looks}>
      {isPast ? pastText(at, now) : relativeText(at, now)}
    </Exact>
  );
}

/** Shows the duration from `from` to `to`. If `to` is undefined, shows the duration until now. */
export function Lasting({ from, to }: { from: string | undefined; to: string | null | undefined }) {
  const end = to ? Date.parse(to) : undefined;
  const present = useSyncExternalStore(subscribe, () => (end === undefined ? Math.floor(now / 1000) * 1000 : 0));
  if (from === undefined) return null;
  return <>{durationText(Math.max(0, (end ?? Math.max(present, Date.parse(from))) - Date.parse(from)))}</>;
}
