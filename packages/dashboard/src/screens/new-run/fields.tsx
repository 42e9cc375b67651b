/** Fields of the form for a run. */
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
    <input
      {...control}
      type="number"
      className="in"
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
    <label className="row top">
      <input type="checkbox" className="check" checked={isOn} onChange={({ target }) => set(target.checked)} />
      <span>
        Fresh environment
        <br />
        <span className="hint">
          Runs the setup from the beginning, also if an earlier run left a prepared workspace.
        </span>
      </span>
    </label>
  );
}
