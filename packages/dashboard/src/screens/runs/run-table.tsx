import type { RunItem } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import { Link, useNavigate } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { lazy, type MouseEvent, memo, Suspense, useCallback, useEffect, useRef, useState } from 'react';
import { lastRunShown } from '../../api/run-place.ts';
import { ButtonLink, Check } from '../../parts/controls.tsx';
import { copyText } from '../../parts/copy.tsx';
import { Space } from '../../parts/empty.tsx';
import { StateBadge } from '../../parts/icon.tsx';
import { useKeys } from '../../parts/keys.ts';
import { Cell, RunCell, Table } from '../../parts/table.tsx';
import { Changed, type Column, Reason } from './columns.tsx';
import styles from './runs.module.css';

const Peek = lazy(async () => ({ default: (await import('./peek.tsx')).Peek }));

/** The next page of runs is read when fewer rows than this are loaded below the visible part. */
const readAhead = 30;

/** Shows the runs as rows of a table. Only the rows near the visible part are rendered. */
export function RunTable({
  rows,
  columns: chosen,
  selected,
  select,
  isStale,
  total,
  readMore,
}: {
  rows: readonly RunItem[];
  columns: readonly Column[];
  selected: ReadonlySet<string>;
  select: (ids: readonly string[], isOn: boolean) => void;
  isStale: boolean;
  /** Number of rows of the whole list; -1 if it is not known. */
  total: number;
  readMore: () => void;
}) {
  const navigate = useNavigate();
  const table = useRef<HTMLTableElement>(null);
  // When the reader comes back from the screen of a run, the row of this run is the current row.
  const [current, setCurrent] = useState(() => rows.findIndex(({ run_id: id }) => id === lastRunShown()));
  const [isPeeking, setPeeking] = useState(false);
  const lastSelected = useRef(-1);
  const rowPx = matchMedia('(pointer: coarse)').matches ? 44 : 34;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => document.getElementById('main'),
    estimateSize: () => rowPx,
    overscan: 8,
    scrollMargin: table.current?.offsetTop ?? 0,
    getItemKey: (index) => rows[index]?.run_id ?? index,
  });
  const peeked = isPeeking ? rows[current] : undefined;
  // Hide the chosen columns while the preview of a run is open. The preview shows the same facts, and the title needs the space.
  const columns = peeked ? [] : chosen;
  const items = virtual.getVirtualItems();
  const first = items[0];
  const last = items.at(-1);
  const lastIndex = last?.index ?? 0;
  useEffect(() => {
    if (lastIndex >= rows.length - readAhead) readMore();
  }, [lastIndex, rows.length, readMore]);

  const move = (by: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, current + by));
    setCurrent(next);
    virtual.scrollToIndex(next);
    const focus = (): boolean => {
      const link = table.current?.querySelector<HTMLElement>(`[data-index="${next}"] a`);
      link?.focus({ preventScroll: true });
      return link !== null;
    };
    // If the row is not rendered yet, try again in the next frame, because the list has scrolled to the row by then.
    if (!focus()) requestAnimationFrame(focus);
  };
  const latest = useRef({ rows, selected, select });
  useEffect(() => {
    latest.current = { rows, selected, select };
  });
  // Keep the same function object in all renderings, so that React renders only the changed rows again after a key press or scrolling.
  const toggle = useCallback((index: number, isRange: boolean) => {
    const { rows: listed, selected: before, select: change } = latest.current;
    const id = listed[index]?.run_id;
    if (id === undefined) return;
    const from = isRange && lastSelected.current >= 0 ? lastSelected.current : index;
    const [low, high] = from < index ? [from, index] : [index, from];
    change(
      listed.slice(low, high + 1).map(({ run_id: each }) => each),
      !before.has(id),
    );
    lastSelected.current = index;
  }, []);
  useKeys([
    { key: 'j', does: 'Next run', run: () => move(1) },
    { key: 'k', does: 'Run before', run: () => move(-1) },
    {
      key: 'Enter',
      does: 'Open the run',
      run: () => {
        const run = rows[current];
        if (run) void navigate({ to: '/runs/$runId', params: { runId: run.run_id } });
      },
    },
    {
      key: 'space',
      does: 'Preview the run beside the list',
      run: () => {
        if (current < 0) move(1);
        setPeeking(!isPeeking);
      },
    },
    { key: 'x', does: 'Select the run', run: () => toggle(current, false) },
    {
      key: 'a',
      does: 'Answer the question of the run',
      run: () => {
        const run = rows[current];
        if (run?.state === 'BLOCKED') void navigate({ to: '/runs/$runId', params: { runId: run.run_id } });
      },
    },
    {
      key: 'y',
      does: 'Copy the id of the run',
      run: () => {
        const id = rows[current]?.run_id;
        if (id !== undefined) void copyText(id, 'Copied the run id');
      },
    },
  ]);
  const isAllSelected = rows.length > 0 && rows.every(({ run_id: id }) => selected.has(id));
  const list = (
    <Table
      bare
      stacked
      stale={isStale}
      className={styles.runs}
      ref={table}
      aria-rowcount={total}
      columns={[
        {
          width: 44,
          name: (
            <Check
              type="checkbox"
              aria-label="Select all loaded runs"
              checked={isAllSelected}
              onChange={({ target }) =>
                select(
                  rows.map(({ run_id: id }) => id),
                  target.checked,
                )
              }
            />
          ),
        },
        { name: 'State', width: 120 },
        { name: 'Run' },
        ...columns.map(({ label, width, looks }) => ({ name: label, width, ...looks })),
        { name: 'Changed', width: 92, number: true },
      ]}
    >
      <Space px={(first?.start ?? 0) - virtual.options.scrollMargin} />
      {items.map(({ index, key }) => {
        const run = rows[index];
        return (
          run && (
            <RunRow
              key={String(key)}
              run={run}
              index={index}
              columns={columns}
              isSelected={selected.has(run.run_id)}
              isCurrent={index === current}
              toggle={toggle}
              setCurrent={setCurrent}
              measure={virtual.measureElement}
            />
          )
        );
      })}
      <Space px={virtual.getTotalSize() - ((last?.end ?? 0) - virtual.options.scrollMargin)} />
    </Table>
  );
  return (
    <div className={styles.beside}>
      {list}
      <Suspense>{peeked && <Peek run={peeked} close={() => setPeeking(false)} />}</Suspense>
    </div>
  );
}

const RunRow = memo(function RunRow({
  run,
  index,
  columns,
  isSelected,
  isCurrent,
  toggle,
  setCurrent,
  measure,
}: {
  run: RunItem;
  index: number;
  columns: readonly Column[];
  isSelected: boolean;
  isCurrent: boolean;
  toggle: (index: number, isRange: boolean) => void;
  setCurrent: (index: number) => void;
  measure: (element: Element | null) => void;
}) {
  const navigate = useNavigate();
  const open = (event: MouseEvent) => {
    if ((event.target as Element).closest('a, button, input')) return;
    void navigate({ to: '/runs/$runId', params: { runId: run.run_id } });
  };
  return (
    <tr
      ref={measure}
      data-index={index}
      aria-rowindex={index + 2}
      className={`${isSelected ? styles.selected : ''} ${isCurrent ? styles.current : ''}`}
      onClick={open}
      onFocus={() => setCurrent(index)}
    >
      <td>
        <Check
          type="checkbox"
          aria-label={`Select ${visibleText(run.title)}`}
          checked={isSelected}
          readOnly
          onClick={({ shiftKey }) => toggle(index, shiftKey)}
        />
      </td>
      <td className={styles.cState}>
        <StateBadge state={run.state} />
      </td>
      <td className={styles.cRun}>
        <RunCell>
          <Link to="/runs/$runId" params={{ runId: run.run_id }}>
            {visibleText(run.title)}
          </Link>
          <Reason run={run} />
          {run.state === 'BLOCKED' && (
            <ButtonLink small notNarrow to="/runs/$runId" params={{ runId: run.run_id }}>
              Answer <kbd>A</kbd>
            </ButtonLink>
          )}
        </RunCell>
      </td>
      {columns.map(({ name, looks, cell }) => (
        <Cell key={name} {...looks} className={styles.lesser}>
          {cell(run)}
        </Cell>
      ))}
      <Cell number className={styles.cTime}>
        <Changed run={run} />
      </Cell>
    </tr>
  );
});
