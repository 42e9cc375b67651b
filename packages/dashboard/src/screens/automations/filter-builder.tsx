import type { TestFilterResponse } from '@runyard/contract/automations/automations';
import { visibleText } from '@runyard/contract/wire/visible';
import { type KeyboardEvent, useState } from 'react';
import { Badge, Fold, Hint, P, Stack } from '../../parts/blocks.tsx';
import { Button, FindInput, Input } from '../../parts/controls.tsx';
import { Icon } from '../../parts/icon.tsx';
import input from '../../parts/input.module.css';
import styles from './automations.module.css';
import { type Condition, clashOf, conditions, type FilterRow, readValue } from './filter-rows.ts';

type Check = TestFilterResponse['checks'][number];

const words: Readonly<Record<Condition, string>> = {
  in: 'is one of',
  not_in: 'is none of',
  exists: 'exists',
  missing: 'is missing',
};

const clashWords = {
  joined: 'Another row above has this field and condition: the values count together.',
  ignored: 'A field cannot both exist and be missing: the row above counts.',
} as const;

/** Returns the result of this row in the last test of the filter. */
function checkOf({ path, condition }: FilterRow, checks: readonly Check[]): Check | undefined {
  const kind = condition === 'in' || condition === 'not_in' ? condition : 'exists';
  return checks.find((check) => check.check === kind && (check.path ?? '').replaceAll(/\[\d+\]/g, '') === path);
}

/**
 * Lets a person edit a payload filter as rows. A delivery matches if it meets all rows. Each row shows its result in the last test of the
 * filter.
 */
export function FilterBuilder({
  rows,
  checks,
  change,
}: {
  rows: readonly FilterRow[];
  checks: readonly Check[];
  change: (rows: readonly FilterRow[]) => void;
}) {
  const set = (index: number, row: Partial<FilterRow>) =>
    change(rows.map((each, place) => (place === index ? { ...each, ...row } : each)));
  return (
    <Stack gap={2}>
      {rows.map((row, index) => {
        const check = checkOf(row, checks);
        const clash = clashOf(rows, index);
        return (
          <div key={index}>
            <div className={styles.rule}>
              <Input
                mono
                aria-label="Field"
                placeholder="pull_request.user.login"
                value={row.path}
                onChange={({ target }) => set(index, { path: target.value })}
              />
              <span className={input.select}>
                <Input
                  as="select"
                  aria-label="Condition"
                  value={row.condition}
                  onChange={({ target }) =>
                    set(index, { condition: conditions.find((each) => each === target.value) ?? 'in' })
                  }
                >
                  {conditions.map((each) => (
                    <option key={each} value={each}>
                      {words[each]}
                    </option>
                  ))}
                </Input>
                <Icon name="down" small />
              </span>
              {row.condition === 'in' || row.condition === 'not_in' ? (
                <Values row={row} change={(values) => set(index, { values })} />
              ) : (
                <span />
              )}
              <Button
                kind="ghost"
                small
                icon="x"
                aria-label={`Remove the condition of ${row.path}`}
                onClick={() => change(rows.filter((_, place) => place !== index))}
              />
              {check ? (
                <Icon name={check.passed ? 'check' : 'x'} small tone={check.passed ? 'good' : 'bad'} />
              ) : (
                <span />
              )}
            </div>
            {clash && (
              <P tone="wait" small>
                {clashWords[clash]}
              </P>
            )}
            {check && !check.passed && <Hint as="p">{visibleText(check.reason)}</Hint>}
          </div>
        );
      })}
      <Button small icon="plus" start onClick={() => change([...rows, { path: '', condition: 'in', values: [] }])}>
        Condition
      </Button>
    </Stack>
  );
}

function Values({ row, change }: { row: FilterRow; change: (values: FilterRow['values']) => void }) {
  const [text, setText] = useState('');
  const add = () => {
    if (text.trim() === '') return;
    change([...row.values, readValue(text)]);
    setText('');
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' || event.key === ',') {
      event.preventDefault();
      add();
    } else if (event.key === 'Backspace' && text === '') change(row.values.slice(0, -1));
  };
  return (
    <span className={styles.values}>
      {row.values.map((value, index) => (
        <Badge key={index}>
          <code>{visibleText(JSON.stringify(value))}</code>
          <Fold
            type="button"
            aria-label={`Remove ${JSON.stringify(value)}`}
            onClick={() => change(row.values.filter((_, place) => place !== index))}
          >
            ×
          </Fold>
        </Badge>
      ))}
      <FindInput
        grow
        aria-label="Add a value"
        placeholder={row.values.length === 0 ? 'values' : ''}
        value={text}
        onChange={({ target }) => setText(target.value)}
        onKeyDown={onKeyDown}
        onBlur={add}
      />
    </span>
  );
}
