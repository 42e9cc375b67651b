import { visibleText } from '@runyard/contract/wire/visible';
import { useSyncExternalStore } from 'react';
import { Button } from './controls.tsx';
import { keyText, useKeys } from './keys.ts';
import styles from './toast.module.css';
import { restart, setToast, shownToast, stopTimer, subscribe } from './toast.tsx';

/** Shows the messages of `showToast`. A message does not disappear while the pointer or the focus is on it. */
export function Toasts() {
  const shown = useSyncExternalStore(subscribe, shownToast);
  const undo = () => {
    shown?.undo?.();
    setToast(undefined);
  };
  useKeys(shown?.undo ? [{ key: 'mod+z', does: 'Undo the action of the message', run: undo }] : []);
  return (
    <div role="status">
      {shown && (
        // biome-ignore lint/a11y/noStaticElementInteractions: it only stops the time
        <div
          className={`${styles.toast} ${shown.reloads ? styles.atTop : ''}`}
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
            <Button small onClick={() => location.reload()}>
              Load the page again
            </Button>
          )}
          {shown.undo && (
            <Button small onClick={undo}>
              Undo <kbd>{keyText('mod+z')}</kbd>
            </Button>
          )}
          <Button kind="ghost" small icon="x" aria-label="Close message" onClick={() => setToast(undefined)} />
        </div>
      )}
    </div>
  );
}
