import { visibleText } from '@runyard/contract/wire/visible';
import { useState } from 'react';
import { usePrinted } from './printing.ts';

/**
 * How the page marks a field. `hit`: the field meets a condition of a filter. `miss`: the field does not meet a condition of the filter.
 */
export type JsonMark = 'hit' | 'miss';

interface Options {
  /** Marks of fields. Each key is the path of a field, such as `pull_request.user.login`. */
  readonly marks?: ReadonlyMap<string, JsonMark>;
  /** Called with the path and value of a field that the reader selects. */
  readonly onSelect?: (path: string, value: unknown) => void;
}

/** Shows a JSON value. At first, levels below the second level are folded. */
export function JsonView({ value, ...options }: { value: unknown } & Options) {
  return (
    <div className="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls the text */}
      <pre tabIndex={0}>
        <Node value={value} path="" depth={0} {...options} />
      </pre>
    </div>
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
  const [begin, end] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (members.length === 0) return `${begin}${end}`;
  const indent = '  '.repeat(depth + 1);
  return (
    <>
      {begin}
      <button type="button" className="fold" aria-expanded={isOpen} onClick={() => setUnfolded(!isOpen)}>
        {isOpen ? '−' : `${members.length} ${Array.isArray(value) ? 'values' : 'fields'}`}
      </button>
      {isOpen &&
        members.slice(0, count).map(([name, member]) => {
          const memberPath = path === '' ? name : `${path}.${name}`;
          return (
            <span key={name}>
              {`\n${indent}`}
              {!Array.isArray(value) && <span className="js-k">{`${visibleText(JSON.stringify(name))}: `}</span>}
              <Node value={member} path={memberPath} depth={depth + 1} {...options} />
              {','}
            </span>
          );
        })}
      {isOpen && members.length > count && (
        <button type="button" className="fold" onClick={() => setCount(count + 1000)}>
          {`${members.length - count} more`}
        </button>
      )}
      {isOpen ? `\n${'  '.repeat(depth)}${end}` : end}
    </>
  );
}

function Scalar({ value, path, marks, onSelect }: { value: unknown; path: string } & Options) {
  const kind = typeof value === 'string' ? 'js-s' : typeof value === 'number' ? 'js-n' : 'js-b';
  const mark = marks?.get(path);
  const className = `${kind} ${mark === undefined ? '' : `js-${mark}`}`;
  const text = visibleText(JSON.stringify(value) ?? 'undefined');
  if (onSelect === undefined) return <span className={className}>{text}</span>;
  return (
    <button type="button" className={`fold ${className}`} title={path} onClick={() => onSelect(path, value)}>
      {text}
    </button>
  );
}
