import { useState } from 'react';
import { Facts, Row } from '../parts/blocks.tsx';
import { Check } from '../parts/controls.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { areSingleKeysOn, keyCommands, keyText, setSingleKeys } from '../parts/keys.ts';
import styles from './app.module.css';

/** Lists the keyboard shortcuts of the current page, and lets the person turn off shortcuts that are a single key. */
export function KeyMap({ close }: { close: () => void }) {
  const [isOn, setOn] = useState(areSingleKeysOn());
  const [commands] = useState(keyCommands);
  return (
    <Dialog
      title="Keys"
      close={close}
      footer={
        <Row as="label" grow>
          <Check
            type="checkbox"
            checked={isOn}
            onChange={({ target }) => {
              setSingleKeys(target.checked);
              setOn(target.checked);
            }}
          />
          Single keys act outside fields
        </Row>
      }
    >
      <Facts>
        {commands.map(({ key, does }) => (
          <div key={key} className={styles.keyRow}>
            <dt>
              <kbd>{keyText(key)}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </Facts>
    </Dialog>
  );
}
