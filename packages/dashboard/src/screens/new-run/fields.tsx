/** Fields of the form for a run. */

import { Hint, Row } from '../../parts/blocks.tsx';
import { Check, Input } from '../../parts/controls.tsx';
import type { Control } from '../../parts/form.tsx';

/** A field for a limit. An empty field sets no limit. */
export function Amount({
  control,
  step,
  value,
  change,
}: {
  control: Control;
  step: string;
  value: string;
  change: (value: string) => void;
}) {
  return (
    <Input
      {...control}
      type="number"
      min="0"
      step={step}
      placeholder="no separate limit"
      value={value}
      onChange={({ target }) => change(target.value)}
    />
  );
}

/** Lets a person choose that a run sets its environment up from the beginning. */
export function FreshCheck({ isOn, set }: { isOn: boolean; set: (isOn: boolean) => void }) {
  return (
    <Row as="label" top>
      <Check type="checkbox" checked={isOn} onChange={({ target }) => set(target.checked)} />
      <span>
        Fresh environment
        <br />
        <Hint>Runs the setup from the beginning, also if an earlier run left a prepared workspace.</Hint>
      </span>
    </Row>
  );
}
