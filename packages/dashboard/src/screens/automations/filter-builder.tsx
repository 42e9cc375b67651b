import type { TestFilterResponse } from '@runyard/contract/automations/automations';
import { visibleText } from '@runyard/contract/wire/visible';
import { type KeyboardEvent, useState } from 'react';
import { Icon } from '../../parts/icon.tsx';
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
    <div className="stack s2">
      {rows.map((row, index) => {
        const check = checkOf(row, checks);
        const clash = clashOf(rows, index);
        return (
          <div key={index}>
            <div className="rule">
              <input
                className="in mono"
                aria-label="Field"
                placeholder="pull_request.user.login"
                value={row.path}
                onChange={({ target }) => set(index, { path: target.value })}
              />
              <span className="sel">
                <select
                  className="in"
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
                </select>
                <Icon name="down" small />
              </span>
              {row.condition === 'in' || row.condition === 'not_in' ? (
                <Values row={row} change={(values) => set(index, { values })} />
              ) : (
                <span />
              )}
              <button
                type="button"
                className="btn ghost sm icon"
                aria-label={`Remove the condition of ${row.path}`}
                onClick={() => change(rows.filter((_, place) => place !== index))}
              >
                <Icon name="x" small />
              </button>
              {check ? (
                <Icon name={check.passed ? 'check' : 'x'} small className={check.passed ? 'okc' : 'badc'} />
              ) : (
                <span />
              )}
            </div>
            {clash && <p className="small waitc">{clashWords[clash]}</p>}
            {check && !check.passed && <p className="hint">{visibleText(check.reason)}</p>}
          </div>
        );
      })}
      <button
        type="button"
        className="btn sm start"
        onClick={() => change([...rows, { path: '', condition: 'in', values: [] }])}
      >
        <Icon name="plus" small />
        Condition
      </button>
    </div>
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
    <span className="vals">
      {row.values.map((value, index) => (
        <span key={index} className="tag">
          <code>{visibleText(JSON.stringify(value))}</code>
          <button
            type="button"
            className="fold"
            aria-label={`Remove ${JSON.stringify(value)}`}
            onClick={() => change(row.values.filter((_, place) => place !== index))}
          >
            ×
          </button>
        </span>
      ))}
      <input
        className="find-in grow"
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
