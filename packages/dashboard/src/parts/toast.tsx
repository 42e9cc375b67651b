/** The message that the page shows for a short time. `toasts.tsx` shows it. */

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly undo: (() => void) | undefined;
  /** True: the message stays until it is closed, and its button loads the page again. */
  readonly reloads?: true;
}

let toast: Toast | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

export function setToast(next: Toast | undefined): void {
  toast = next;
  for (const listener of listeners) listener();
}

export function restart(): void {
  clearTimeout(timer);
  if (toast?.reloads) return;
  timer = setTimeout(() => setToast(undefined), 6000);
}

/**
 * Shows a short message for 6 s, with a button if `undo` is given. A failure is shown next to its cause instead, unless its cause may no
 * longer be on the page.
 */
export function showToast(text: string, undo?: () => void): void {
  setToast({ id: (toast?.id ?? 0) + 1, text, undo });
  restart();
}

/**
 * Offers to load the page again, after the file of a screen could not be loaded, because the service has other files after an upgrade. The
 * page does not load by itself, because the person may be typing.
 */
export function offerReload(): void {
  clearTimeout(timer);
  setToast({
    id: 0,
    text: '',
    undo: undefined,
    reloads: true,
  });
}

export const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

export const shownToast = (): Toast | undefined => toast;
export const stopTimer = (): void => clearTimeout(timer);
