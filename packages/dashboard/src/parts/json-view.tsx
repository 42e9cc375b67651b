import { memberPath } from '@runyard/contract/automations/payload-filter/path';
import { visibleText } from '@runyard/contract/wire/visible';
import { useState } from 'react';
import { CodeBlock, Fold } from './blocks.tsx';
import styles from './code.module.css';
import { copyText } from './copy.tsx';
import { usePrinted } from './printing.ts';

/**
 * How the page marks a field. `hit`: the field meets a condition of a filter. `miss`: the field does not meet a condition of the filter.
 */
export type JsonMark = 'hit' | 'miss';

interface Options {
  /** Marks of fields. Each key is the path of a field, such as `data.items[2].state`. */
  readonly marks?: ReadonlyMap<string, JsonMark>;
  /** Called with the path and value of a field that the reader selects. Absent: fields cannot be selected. */
  readonly onSelect?: (path: string, value: unknown) => void;
  /** First words of the tooltip of a value: they say the effect of a click. */
  readonly selects?: string;
}

/** Returns the marks of fields after the conditions of a filter were compared with them. A field that misses one condition is a miss. */
export function marksOf(checks: readonly { readonly path?: string | undefined; readonly passed: boolean }[]) {
  const marks = new Map<string, JsonMark>();
  for (const { path, passed } of checks)
    if (path !== undefined && marks.get(path) !== 'miss') marks.set(path, passed ? 'hit' : 'miss');
  return marks;
}

/** Copies the path of a field to the clipboard. */
export const copyPath = (path: string): void => void copyText(path, `Copied the path ${path}`);

/** Shows a JSON value. At first, levels below the second level are folded. */
export function JsonView({ value, ...options }: { value: unknown } & Options) {
  return (
    <CodeBlock>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls the text */}
      <pre tabIndex={0}>
        <Node value={value} path="" depth={0} {...options} />
      </pre>
    </CodeBlock>
  );
}

/** Number of members of one object or list that are shown at first. */
const firstMembers = 100;

function Node({ value, path, depth, ...options }: { value: unknown; path: string; depth: number } & Options) {
  const [isUnfolded, setUnfolded] = useState(depth < 2);
  const isPrinted = usePrinted();
  const isOpen = isUnfolded || isPrinted;
  const [count, setCount] = useState(firstMembers);
  if (typeof value !== 'object' || value === null) return <Scalar value={value} path={path} {...options} />;
  const members: [string, unknown][] = Array.isArray(value)
    ? value.map((each, index) => [String(index), each])
    : Object.entries(value);
  const mark = options.marks?.get(path);
  const [begin, end] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (members.length === 0) return `${begin}${end}`;
  const indent = '  '.repeat(depth + 1);
  return (
    <>
      {begin}
      <button
        type="button"
        className={`${styles.fold} ${mark === undefined ? '' : styles[mark]}`}
        data-mark={mark}
        aria-expanded={isOpen}
        onClick={() => setUnfolded(!isOpen)}
      >
        {isOpen ? '−' : `${members.length} ${Array.isArray(value) ? 'values' : 'fields'}`}
      </button>
      {isOpen &&
        members.slice(0, count).map(([name, member]) => {
          const at = memberPath(path, Array.isArray(value) ? Number(name) : name);
          return (
            <span key={name}>
              {`\n${indent}`}
              {!Array.isArray(value) && <span className={styles.key}>{`${visibleText(JSON.stringify(name))}: `}</span>}
              <Node value={member} path={at} depth={depth + 1} {...options} />
              {','}
            </span>
          );
        })}
      {isOpen && members.length > count && (
        <Fold type="button" onClick={() => setCount(count + 1000)}>
          {`${members.length - count} more`}
        </Fold>
      )}
      {isOpen ? `\n${'  '.repeat(depth)}${end}` : end}
    </>
  );
}

function Scalar({
  value,
  path,
  marks,
  onSelect,
  selects = 'Copy the path',
}: { value: unknown; path: string } & Options) {
  const kind = typeof value === 'string' ? styles.string : typeof value === 'number' ? styles.number : styles.boolean;
  const mark = marks?.get(path);
  const className = `${kind} ${mark === undefined ? '' : styles[mark]}`;
  const text = visibleText(JSON.stringify(value) ?? 'undefined');
  if (onSelect === undefined || path === '')
    return (
      <span className={className} data-mark={mark}>
        {text}
      </span>
    );
  return (
    <button
      type="button"
      className={`${styles.fold} ${className}`}
      data-mark={mark}
      title={visibleText(`${selects}: ${path}`)}
      onClick={() => onSelect(path, value)}
    >
      {text}
    </button>
  );
}
