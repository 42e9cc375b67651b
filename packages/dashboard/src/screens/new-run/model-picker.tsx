import { presets } from '@runyard/contract/agent/harness-presets/presets';
import type { Model } from '@runyard/contract/team/models';
import { visibleText } from '@runyard/contract/wire/visible';
import { Button, ComboBox, Input, Label, ListBox, ListBoxItem, Popover } from 'react-aria-components';
import { useModels } from '../../api/lists.ts';
import { Hint, Text } from '../../parts/blocks.tsx';
import { FieldGroup } from '../../parts/controls.tsx';
import { FaultText } from '../../parts/fault-text.tsx';
import { useFault } from '../../parts/form.tsx';
import { Icon } from '../../parts/icon.tsx';
import menu from '../../parts/menu.module.css';
import styles from './new-run.module.css';

/** A harness with a model, which work on the prompt. An empty harness is the built-in one; an empty model is the default. */
export interface Worker {
  readonly harness: string;
  readonly model: string;
}

interface Choice extends Worker {
  readonly name: string;
  readonly note: string;
  /** The model cannot be chosen now. */
  readonly isOff: boolean;
}

/** A space, because names of harnesses have none. */
const keyOf = ({ harness, model }: Worker): string => `${harness} ${model}`;

const priceOf = ({ cost }: Model): string =>
  cost === undefined ? '' : `$${cost.input_usd_per_mtok} read, $${cost.output_usd_per_mtok} written`;

/** An administrator disables a model by hand; otherwise this reason means that its provider has no key. */
const offWords = {
  ADMIN_DISABLED: 'no key, or disabled',
  OUT_OF_REQUESTS: 'the budget is spent',
  PROVIDER_OUTAGE: 'its provider has an outage',
  REQUIRES_UPGRADE: 'not available',
} as const;

function choicesOf(models: readonly Model[], defaultId: string | undefined, present: Worker): Choice[] {
  const choices = [
    { harness: '', model: '', name: `The default: ${defaultId ?? '…'}`, note: '', isOff: false },
    ...models
      .map((model) => ({
        harness: '',
        model: model.id,
        name: model.display_name,
        note: model.disable_reason === undefined ? priceOf(model) : offWords[model.disable_reason],
        isOff: model.disable_reason !== undefined,
      }))
      .sort((a, b) => Number(a.isOff) - Number(b.isOff)),
    ...Object.keys(presets).map((harness) => ({
      harness,
      model: '',
      name: harness,
      note: 'harness on the worker, with the default model',
      isOff: false,
    })),
  ];
  const isListed = choices.some((each) => keyOf(each) === keyOf(present));
  const name = [present.harness, present.model].filter(Boolean).join(' with ');
  return isListed ? choices : [...choices, { ...present, name, note: '', isOff: false }];
}

/** Lets a person search for a harness and a model together, and shows the price of each model. */
export function ModelPicker({ worker, set }: { worker: Worker; set: (worker: Worker) => void }) {
  const { data } = useModels();
  const fault = useFault('config.model_id');
  const choices = choicesOf(data?.models ?? [], data?.default_model_id, worker);
  const chosen = choices.find((each) => keyOf(each) === keyOf(worker));
  return (
    <FieldGroup>
      <ComboBox
        // The text of the field is the name of the choice, which is known when the list of models has arrived.
        key={data === undefined ? 'loading' : 'loaded'}
        className={styles.picker ?? ''}
        defaultItems={choices.map((each) => ({ ...each, id: keyOf(each) }))}
        selectedKey={keyOf(worker)}
        onSelectionChange={(key) => {
          const [harness = '', model = ''] = String(key ?? ' ').split(/ (.*)/);
          set({ harness, model });
        }}
        menuTrigger="focus"
        isInvalid={fault !== undefined}
        allowsEmptyCollection
      >
        <Label>Model</Label>
        <div className={styles.field}>
          <Input className={styles.input ?? ''} spellCheck="false" onFocus={({ target }) => target.select()} />
          <Button className={styles.arrow ?? ''} aria-label="Show all models">
            <Icon name="down" small />
          </Button>
        </div>
        <Popover className={`${menu.popover} ${styles.popover}`}>
          <ListBox className={menu.menu ?? ''} renderEmptyState={() => <Hint>No model has this name.</Hint>}>
            {({ id, name, note, isOff }: Choice & { id: string }) => (
              <ListBoxItem id={id} textValue={name} isDisabled={isOff} className={`${menu.entry} ${styles.option}`}>
                <Text grow cut>
                  {visibleText(name)}
                </Text>
                <Hint>{note}</Hint>
              </ListBoxItem>
            )}
          </ListBox>
        </Popover>
      </ComboBox>
      {fault !== undefined && <FaultText id="model-fault" fault={fault} control="model" />}
      {chosen?.note && <Hint>{`${chosen.note}${chosen.model ? ', for a million tokens' : ''}`}</Hint>}
    </FieldGroup>
  );
}
