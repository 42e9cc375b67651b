import type { RunItem } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import { Fact, Facts, Hint, Text } from '../../parts/blocks.tsx';
import { CopyButton } from '../../parts/copy.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import styles from './facts.module.css';

/** Maximum number of fields in the table. The JSON shows all. */
const maxFields = 50;

/** Maximum number of characters of a text in the table. */
const maxText = 500;

/** Shows the result of a run as a table of its fields, and as JSON. An agent wrote the result, so it is only shown as text. */
export function Result({ run }: { run: RunItem }) {
  const { result, result_artifact_uid: artifactUid } = run;
  if (artifactUid !== undefined)
    return (
      <div className={styles.section}>
        <h2>Result</h2>
        <Hint as="p">The result is too large for this page. It is the artifact “Result” below.</Hint>
      </div>
    );
  const fields = isObject(result) ? Object.entries(result) : [];
  return (
    <div className={styles.section} data-part="result">
      <h2>
        Result
        <Text right>
          <CopyButton text={() => JSON.stringify(result, null, 2)} what="Copy the result as JSON" />
        </Text>
      </h2>
      {fields.length > 0 && (
        <Facts>
          {fields.slice(0, maxFields).map(([name, value]) => (
            <Fact key={name} name={visibleText(name)}>
              {isObject(value) || Array.isArray(value) ? <JsonView value={value} /> : fieldText(value)}
            </Fact>
          ))}
        </Facts>
      )}
      <details open={fields.length === 0}>
        <Text as="summary" tone="dim" small>
          JSON
        </Text>
        <JsonView value={result} />
      </details>
    </div>
  );
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the text of a field. A fact without content is not shown, so an empty text has a word of its own. */
function fieldText(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  if (value === '') return '(empty)';
  return visibleText(value.length > maxText ? `${value.slice(0, maxText)}…` : value);
}
