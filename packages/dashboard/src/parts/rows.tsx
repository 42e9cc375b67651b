import { useId } from 'react';
import { Hint, P } from './blocks.tsx';
import { Button, Input } from './controls.tsx';
import { FaultText } from './fault-text.tsx';
import { useFault } from './form.tsx';
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
        <TextRow
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
        <P tone="bad" small role="alert">
          {fault.message}
        </P>
      )}
      <Button small icon="plus" start onClick={() => set([...values, ''])}>
        {`Add ${what}`}
      </Button>
      {hint !== undefined && <Hint>{hint}</Hint>}
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

function TextRow({
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
    mono: true,
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
          <Input
            as="textarea"
            {...common}
            rows={Math.max(1, value.split('\n').length)}
            onChange={(event) => change(event.target.value)}
          />
        ) : (
          <Input {...common} list={list} onChange={(event) => change(event.target.value)} />
        )}
        <Button kind="ghost" icon="x" aria-label={`Remove ${label}`} onClick={remove} />
      </div>
      {fault && <FaultText id={`${id}-fault`} fault={fault} control={id} />}
    </>
  );
}
