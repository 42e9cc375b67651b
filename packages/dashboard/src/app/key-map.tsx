import { useState } from 'react';
import { Dialog } from '../parts/dialog.tsx';
import { areSingleKeysOn, keyCommands, keyText, setSingleKeys } from '../parts/keys.ts';

/** Lists the keyboard shortcuts of the current page, and lets the person turn off shortcuts that are a single key. */
export function KeyMap({ close }: { close: () => void }) {
  const [isOn, setOn] = useState(areSingleKeysOn());
  const [commands] = useState(keyCommands);
  return (
    <Dialog
      title="Keys"
      close={close}
      footer={
        <label className="row grow">
          <input
            type="checkbox"
            className="check"
            checked={isOn}
            onChange={({ target }) => {
              setSingleKeys(target.checked);
              setOn(target.checked);
            }}
          />
          Single keys act outside fields
        </label>
      }
    >
      <dl className="kv">
        {commands.map(({ key, does }) => (
          <div key={key} className="kv-row">
            <dt>
              <kbd>{keyText(key)}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
