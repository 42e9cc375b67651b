import { useFault } from '../../parts/form.tsx';
import { Icon } from '../../parts/icon.tsx';
import styles from './settings.module.css';

/** A name with a value that is not shown again. */
export interface Pair {
  readonly name: string;
  readonly value: string;
}

/** Returns the pairs that have a name, as an object. */
export const pairsOf = (pairs: readonly Pair[]): Record<string, string> =>
  Object.fromEntries(pairs.filter(({ name }) => name.trim() !== '').map(({ name, value }) => [name.trim(), value]));

/** Edits names with secret values. */
export function Pairs({
  legend,
  path,
  pairs,
  set,
  what,
}: {
  legend: string;
  path: string;
  pairs: readonly Pair[];
  set: (pairs: readonly Pair[]) => void;
  what: string;
}) {
  const fault = useFault(path);
  return (
    <fieldset className={styles.set}>
      <legend>{legend}</legend>
      {pairs.map(({ name, value }, index) => (
        <div key={index} className={styles.pair}>
          <input
            className="in mono"
            aria-label={`Name of ${what} ${index + 1}`}
            placeholder="name"
            autoComplete="off"
            spellCheck={false}
            value={name}
            onChange={({ target }) => set(pairs.with(index, { name: target.value, value }))}
          />
          <input
            className="in mono"
            type="password"
            aria-label={`Value of ${what} ${index + 1}`}
            placeholder="value"
            autoComplete="off"
            value={value}
            onChange={({ target }) => set(pairs.with(index, { name, value: target.value }))}
          />
          <button
            type="button"
            className="btn ghost icon"
            aria-label={`Remove ${what} ${index + 1}`}
            onClick={() => set(pairs.toSpliced(index, 1))}
          >
            <Icon name="x" small />
          </button>
        </div>
      ))}
      {fault && (
        <p className="small badc" role="alert">
          {fault.message}
        </p>
      )}
      <button type="button" className="btn sm start" onClick={() => set([...pairs, { name: '', value: '' }])}>
        <Icon name="plus" small />
        {`Add ${what}`}
      </button>
    </fieldset>
  );
}
