import { useSyncExternalStore } from 'react';
import { Icon } from '../parts/icon.tsx';

let isMissing = false;
const listeners = new Set<() => void>();
const set = (value: boolean): void => {
  isMissing = value;
  for (const listener of listeners) listener();
};
addEventListener('vite:preloadError', () => set(true));

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/**
 * Offers to load the page again after a file of a screen could not be loaded, because the service has other files after an upgrade. The
 * page does not load by itself, because the person may be typing.
 */
export function MissingFile() {
  const isShown = useSyncExternalStore(subscribe, () => isMissing);
  return (
    <div role="status">
      {isShown && (
        <div className="toast missing">
          <span>A part of this page cannot be loaded. Runyard may have been upgraded.</span>
          <button type="button" className="btn sm" onClick={() => location.reload()}>
            Load the page again
          </button>
          <button type="button" className="btn ghost sm icon" aria-label="Close message" onClick={() => set(false)}>
            <Icon name="x" small />
          </button>
        </div>
      )}
    </div>
  );
}
