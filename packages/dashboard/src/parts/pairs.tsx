import { Hint, P } from './blocks.tsx';
import { Button, Input } from './controls.tsx';
import { useFault } from './form.tsx';
import styles from './rows.module.css';

/** A name with a value. */
export interface Pair {
  readonly name: string;
  readonly value: string;
}

/** Returns an object with the pairs whose name is not empty. */
export const pairsOf = (pairs: readonly Pair[]): Record<string, string> =>
  Object.fromEntries(pairs.filter(({ name }) => name.trim() !== '').map(({ name, value }) => [name.trim(), value]));

/** Lets a person edit a list of names with values. Secret values are hidden while the person types. */
export function Pairs({
  legend,
  path,
  pairs,
  set,
  what,
  hint,
  isSecret = false,
}: {
  legend: string;
  path: string;
  pairs: readonly Pair[];
  set: (pairs: readonly Pair[]) => void;
  /** The word for one pair, such as "variable". */
  what: string;
  hint?: string;
  isSecret?: boolean;
}) {
  const fault = useFault(`${path}.*`);
  return (
    <fieldset className={styles.rows}>
      <legend>{legend}</legend>
      {pairs.map(({ name, value }, index) => (
        <div key={index} className={styles.pair}>
          <Input
            mono
            aria-label={`Name of ${what} ${index + 1}`}
            placeholder="name"
            autoComplete="off"
            spellCheck={false}
            value={name}
            onChange={({ target }) => set(pairs.with(index, { name: target.value, value }))}
          />
          <Input
            mono
            type={isSecret ? 'password' : 'text'}
            spellCheck={false}
            aria-label={`Value of ${what} ${index + 1}`}
            placeholder="value"
            autoComplete="off"
            value={value}
            onChange={({ target }) => set(pairs.with(index, { name, value: target.value }))}
          />
          <Button
            kind="ghost"
            icon="x"
            aria-label={`Remove ${what} ${index + 1}`}
            onClick={() => set(pairs.toSpliced(index, 1))}
          />
        </div>
      ))}
      {fault && (
        <P tone="bad" small role="alert">
          {fault.message}
        </P>
      )}
      <Button small icon="plus" start onClick={() => set([...pairs, { name: '', value: '' }])}>
        {`Add ${what}`}
      </Button>
      {hint !== undefined && <Hint>{hint}</Hint>}
    </fieldset>
  );
}
