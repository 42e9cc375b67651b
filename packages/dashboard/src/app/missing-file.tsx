import { useSyncExternalStore } from 'react';

let isMissing = false;
const listeners = new Set<() => void>();
addEventListener('vite:preloadError', () => {
  isMissing = true;
  for (const listener of listeners) listener();
});

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
        </div>
      )}
    </div>
  );
}
