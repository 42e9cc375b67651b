/** Blocks of a conversation. The page renders only the blocks near the visible part. Other blocks are empty and keep their height. */

import { createContext, type ReactNode, type RefObject, use, useCallback, useEffect, useRef, useState } from 'react';
import { usePrinted } from '../../parts/printing.ts';
import styles from './talk.module.css';

/** A block is rendered if it is at most this many pixels above or below the visible part. */
const nearPx = 1_500;
/** Assumed height in pixels of a block that was never rendered. */
const usualPx = 1_500;

type OnChange = (isNear: boolean) => void;

/**
 * A function that watches an element: it calls `onChange` when the element comes near the visible part of the conversation or is no
 * longer near. It returns a function that ends these calls.
 */
const WatchContext = createContext<(element: Element, onChange: OnChange) => () => void>(() => () => {});

/** Contains blocks and finds the blocks that are near the visible part. `scrollerOf` returns the element that scrolls the blocks. */
export function WatchedBlocks({
  place,
  scrollerOf,
  children,
}: {
  place: RefObject<HTMLElement | null>;
  scrollerOf: (place: HTMLElement | null) => HTMLElement | null;
  children: ReactNode;
}) {
  const listeners = useRef(new Map<Element, OnChange>());
  const observer = useRef<IntersectionObserver | undefined>(undefined);
  const watch = useCallback(
    (element: Element, onChange: OnChange) => {
      observer.current ??= new IntersectionObserver(
        (entries) => {
          for (const { target, isIntersecting } of entries) listeners.current.get(target)?.(isIntersecting);
        },
        { root: scrollerOf(place.current), rootMargin: `${nearPx}px 0px` },
      );
      listeners.current.set(element, onChange);
      observer.current.observe(element);
      return () => {
        listeners.current.delete(element);
        observer.current?.unobserve(element);
      };
    },
    [place, scrollerOf],
  );
  return <WatchContext value={watch}>{children}</WatchContext>;
}

/**
 * Shows `children` while the block is near the visible part. With `isNearAtFirst`, the first rendering already shows `children`. With
 * `isTarget`, the block is shown although it may be far away.
 */
export function Block({
  isNearAtFirst,
  isTarget,
  children,
}: {
  isNearAtFirst: boolean;
  isTarget: boolean;
  children: ReactNode;
}) {
  const watch = use(WatchContext);
  const isPrinted = usePrinted();
  const place = useRef<HTMLDivElement>(null);
  const [isNear, setNear] = useState(isNearAtFirst);
  const [height, setHeight] = useState(usualPx);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    return watch(element, (near) => {
      if (!near && element.childElementCount > 0) setHeight(element.offsetHeight);
      setNear(near);
    });
  }, [watch]);
  const isShown = isNear || isTarget || isPrinted;
  return (
    <div className={styles.block} style={{ height: isShown ? 'auto' : height }} ref={place}>
      {isShown && children}
    </div>
  );
}
