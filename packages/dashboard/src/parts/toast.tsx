import { visibleText } from '@runyard/contract/wire/visible';
import { useSyncExternalStore } from 'react';
import { Icon } from './icon.tsx';
import { keyText, useKeys } from './keys.ts';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly undo: (() => void) | undefined;
}

let toast: Toast | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

function set(next: Toast | undefined): void {
  toast = next;
  for (const listener of listeners) listener();
}

function restart(): void {
  clearTimeout(timer);
  timer = setTimeout(() => set(undefined), 6000);
}

/**
 * Shows a short message for 6 s, with a button if `undo` is given. A failure is shown next to its cause instead, unless its cause may no
 * longer be on the page.
 */
export function showToast(text: string, undo?: () => void): void {
  set({ id: (toast?.id ?? 0) + 1, text, undo });
  restart();
}

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** Shows the messages of `showToast`. A message does not disappear while the pointer or the focus is on it. */
export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toast);
  const undo = () => {
    shown?.undo?.();
    set(undefined);
  };
  useKeys([{ key: 'mod+z', does: 'Undo the action of the message', run: () => shown?.undo && undo() }]);
  return (
    <div role="status">
      {shown && (
        // biome-ignore lint/a11y/noStaticElementInteractions: it only stops the time
        <div
          className="toast"
          key={shown.id}
          onPointerEnter={() => clearTimeout(timer)}
          onPointerLeave={restart}
          onFocus={() => clearTimeout(timer)}
          onBlur={restart}
        >
          <span>{visibleText(shown.text)}</span>
          {shown.undo && (
            <button type="button" className="btn sm" onClick={undo}>
              Undo <kbd>{keyText('mod+z')}</kbd>
            </button>
          )}
          <button type="button" className="btn ghost sm icon" aria-label="Close message" onClick={() => set(undefined)}>
            <Icon name="x" small />
          </button>
        </div>
      )}
    </div>
  );
}
