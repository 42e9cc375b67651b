import { visibleText } from '@runyard/contract/wire/visible';
import { useSyncExternalStore } from 'react';
import { Icon } from './icon.tsx';
import { keyText, useKeys } from './keys.ts';
import { restart, setToast, shownToast, stopTimer, subscribe } from './toast.tsx';

/** Shows the messages of `showToast`. A message does not disappear while the pointer or the focus is on it. */
export function Toasts() {
  const shown = useSyncExternalStore(subscribe, shownToast);
  const undo = () => {
    shown?.undo?.();
    setToast(undefined);
  };
  useKeys([{ key: 'mod+z', does: 'Undo the action of the message', run: () => shown?.undo && undo() }]);
  return (
    <div role="status">
      {shown && (
        // biome-ignore lint/a11y/noStaticElementInteractions: it only stops the time
        <div
          className={`toast ${shown.reloads ? 'top' : ''}`}
          key={shown.id}
          onPointerEnter={() => stopTimer()}
          onPointerLeave={restart}
          onFocus={() => stopTimer()}
          onBlur={restart}
        >
          <span>
            {shown.reloads ? 'A file of this page is missing, perhaps after an upgrade.' : visibleText(shown.text)}
          </span>
          {shown.reloads && (
            <button type="button" className="btn sm" onClick={() => location.reload()}>
              Load the page again
            </button>
          )}
          {shown.undo && (
            <button type="button" className="btn sm" onClick={undo}>
              Undo <kbd>{keyText('mod+z')}</kbd>
            </button>
          )}
          <button
            type="button"
            className="btn ghost sm icon"
            aria-label="Close message"
            onClick={() => setToast(undefined)}
          >
            <Icon name="x" small />
          </button>
        </div>
      )}
    </div>
  );
}
