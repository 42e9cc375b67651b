/** Detects that the page is being printed, because the printed page must also show the parts that are folded on the screen. */

import { useSyncExternalStore } from 'react';
import { flushSync } from 'react-dom';

let isPrinted = false;
const listeners = new Set<() => void>();

/** Changes the value and renders the page at once, before the browser prints the page. */
function set(value: boolean): void {
  isPrinted = value;
  flushSync(() => {
    for (const listener of listeners) listener();
  });
}

function subscribe(listener: () => void): () => void {
  if (listeners.size === 0) {
    addEventListener('beforeprint', begin);
    addEventListener('afterprint', end);
  }
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    removeEventListener('beforeprint', begin);
    removeEventListener('afterprint', end);
  };
}

const begin = (): void => set(true);
const end = (): void => set(false);

/** Returns true while the page is being printed. The component renders again when the value changes. */
export const usePrinted = (): boolean => useSyncExternalStore(subscribe, () => isPrinted);
