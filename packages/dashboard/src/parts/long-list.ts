import { useVirtualizer } from '@tanstack/react-virtual';
import { type RefObject, useLayoutEffect, useRef, useState } from 'react';
import { usePrinted } from './printing.ts';

/** A list with more rows than this renders only the rows near the visible part. */
const maxPlainRows = 200;

/** Returns the element that scrolls the list. */
function scrollerOf(element: Element | null): Element | null {
  for (let each = element?.parentElement; each; each = each.parentElement)
    if (/auto|scroll/.test(getComputedStyle(each).overflowY)) return each;
  return document.getElementById('main');
}

/** The rows of a list to render. */
export interface LongList<E extends Element> {
  /** Ref for the element that contains the rows. */
  readonly list: RefObject<E | null>;
  readonly indexes: readonly number[];
  /** Heights in pixels of the rows above and below that are not rendered. */
  readonly above: number;
  readonly below: number;
  /** Ref function for each row, which also needs the attribute `data-index`. */
  readonly measure: (row: Element | null) => void;
}

/**
 * Selects the rows of a long list that are near the visible part. `isShort`: all rows are rendered, as they are on a printed page.
 */
export function useLongList<E extends Element>({
  count,
  rowPx,
  keyOf,
  isShort = false,
}: {
  count: number;
  /** Height of a row before it is measured. */
  rowPx: number;
  keyOf: (index: number) => string;
  isShort?: boolean;
}): LongList<E> {
  const list = useRef<E>(null);
  const [place, setPlace] = useState<{ readonly scroller: Element | null; readonly margin: number }>();
  const isPrinted = usePrinted();
  const isLong = count > maxPlainRows && !isShort && !isPrinted;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list may have moved when its number of rows changes
  useLayoutEffect(() => {
    const scroller = scrollerOf(list.current);
    const top = (element: Element | null): number => element?.getBoundingClientRect().top ?? 0;
    const margin = top(list.current) - top(scroller) + (scroller?.scrollTop ?? 0);
    setPlace((before) => (before?.scroller === scroller && before.margin === margin ? before : { scroller, margin }));
  }, [count]);
  const virtual = useVirtualizer({
    count: isLong ? count : 0,
    getScrollElement: () => place?.scroller ?? null,
    estimateSize: () => rowPx,
    overscan: 10,
    scrollMargin: place?.margin ?? 0,
    getItemKey: keyOf,
  });
  if (!isLong)
    return { list, indexes: Array.from({ length: count }, (_, index) => index), above: 0, below: 0, measure: () => {} };
  const items = virtual.getVirtualItems();
  const { scrollMargin } = virtual.options;
  return {
    list,
    indexes: items.map(({ index }) => index),
    above: Math.max(0, (items[0]?.start ?? scrollMargin) - scrollMargin),
    below: Math.max(0, virtual.getTotalSize() - ((items.at(-1)?.end ?? scrollMargin) - scrollMargin)),
    measure: virtual.measureElement,
  };
}
