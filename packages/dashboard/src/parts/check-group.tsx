import { visibleText } from '@runyard/contract/wire/visible';
import { P, Row } from './blocks.tsx';
import { Check } from './controls.tsx';
import { useFault } from './form.tsx';
import styles from './rows.module.css';

/** Lets a person choose any number of `options`. An option is a value with its label. The form gets the chosen values under `name`. */
export function CheckGroup({
  legend,
  name,
  path,
  options,
  chosen,
}: {
  legend: string;
  name: string;
  path: string;
  options: readonly (readonly [value: string, words: string])[];
  chosen: readonly string[];
}) {
  const fault = useFault(`${path}.*`);
  return (
    <fieldset className={styles.checks}>
      <legend>{legend}</legend>
      {options.map(([value, words]) => (
        <Row key={value} as="label">
          <Check type="checkbox" name={name} value={value} defaultChecked={chosen.includes(value)} />
          {visibleText(words)}
        </Row>
      ))}
      {fault && (
        <P tone="bad" small role="alert">
          {fault.message}
        </P>
      )}
    </fieldset>
  );
}
