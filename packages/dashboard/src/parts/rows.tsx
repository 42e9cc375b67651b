import { useId } from 'react';
import { FaultText, useFault } from './form.tsx';
import { Icon } from './icon.tsx';
import styles from './rows.module.css';

/**
 * Lets a person edit a list of texts, with one input for each text. Shows faults of the request at `path.0`, `path.1`… at the input of the
 * text.
 */
export function Rows({
  legend,
  path,
  values,
  set,
  what,
  hint,
  lines = 1,
  placeholder,
  suggestions,
}: {
  legend: string;
  path: string;
  values: readonly string[];
  set: (values: readonly string[]) => void;
  /** The word for one row, such as "argument". */
  what: string;
  hint?: string;
  /** Number of lines of each input. If it is 1, the texts contain no line ends. */
  lines?: number;
  placeholder?: string;
  /** Values that an input of one line suggests. */
  suggestions?: readonly string[];
}) {
  const list = useId();
  const fault = useFault(path);
  return (
    <fieldset className={styles.rows}>
      <legend>{legend}</legend>
      {values.map((value, index) => (
        <Row
          key={index}
          label={`${what} ${index + 1}`}
          path={`${path}.${index}`}
          value={value}
          lines={lines}
          placeholder={placeholder}
          list={suggestions && list}
          change={(next) => set(values.with(index, next))}
          remove={() => set(values.toSpliced(index, 1))}
        />
      ))}
      {fault && (
        <p className="small badc" role="alert">
          {fault.message}
        </p>
      )}
      <button type="button" className="btn sm start" onClick={() => set([...values, ''])}>
        <Icon name="plus" small />
        {`Add ${what}`}
      </button>
      {hint !== undefined && <span className="hint">{hint}</span>}
      {suggestions && (
        <datalist id={list}>
          {suggestions.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      )}
    </fieldset>
  );
}

function Row({
  label,
  path,
  value,
  lines,
  placeholder,
  list,
  change,
  remove,
}: {
  label: string;
  path: string;
  value: string;
  lines: number;
  placeholder: string | undefined;
  list: string | undefined;
  change: (value: string) => void;
  remove: () => void;
}) {
  const id = useId();
  const fault = useFault(`${path}.*`);
  const common = {
    id,
    className: 'in mono',
    'aria-label': label,
    'aria-invalid': fault === undefined ? undefined : true,
    'aria-describedby': fault === undefined ? undefined : `${id}-fault`,
    autoComplete: 'off',
    spellCheck: false,
    placeholder,
    value,
  } as const;
  return (
    <>
      <div className={styles.row}>
        {lines > 1 || value.includes('\n') ? (
          <textarea
            {...common}
            rows={Math.max(1, value.split('\n').length)}
            onChange={(event) => change(event.target.value)}
          />
        ) : (
          <input {...common} list={list} onChange={(event) => change(event.target.value)} />
        )}
        <button type="button" className="btn ghost icon" aria-label={`Remove ${label}`} onClick={remove}>
          <Icon name="x" small />
        </button>
      </div>
      {fault && <FaultText id={`${id}-fault`} fault={fault} control={id} />}
    </>
  );
}
