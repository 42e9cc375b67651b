/** The step of the conversation to which a link or a found text leads. */

import { useLocation } from '@tanstack/react-router';
import { createContext, type RefObject, useCallback, useEffect, useLayoutEffect, useState } from 'react';
import type { FollowedRun } from './use-run.ts';

/** Number of the step to which the reader jumped last, so that the step shows its details. */
export const TargetContext = createContext<number | undefined>(undefined);

interface Target {
  /** Number of the entry. */
  readonly seq: number;
  /** Number of its block, which must be rendered although it may be far from the visible part. */
  readonly block: number;
}

/**
 * Lets the reader jump to a step: with `goTo`, or with the hash `#step-12` of the address. Reads the earlier messages up to the step first.
 * `arrive` is called with the element of the step.
 */
export function useTarget(
  { story, isReading, readTo }: FollowedRun,
  place: RefObject<HTMLElement | null>,
  arrive: (element: Element) => void,
) {
  const [target, setTarget] = useState<Target>();
  const [error, setError] = useState<unknown>();
  const goTo = useCallback(
    async (seq: number) => {
      setError(undefined);
      try {
        await readTo(seq);
      } catch (failure) {
        setError(failure);
        return;
      }
      const found = story.find(seq);
      // A new object, so that a second jump to the same step scrolls again.
      setTarget(found && { seq: found.entry.seq, block: found.block });
    },
    [story, readTo],
  );
  const hash = useLocation({ select: (location) => location.hash });
  useEffect(() => {
    const seq = /^step-(\d{1,15})$/.exec(hash)?.[1];
    if (!isReading && seq !== undefined) void goTo(Number(seq));
  }, [hash, isReading, goTo]);
  useEffect(() => {
    // A click on a link to the present hash does not change the address.
    const onClick = ({ target: clicked }: MouseEvent) => {
      const link = clicked instanceof Element ? clicked.closest<HTMLAnchorElement>('a[href^="#step-"]') : null;
      if (link !== null && link.hash === location.hash) void goTo(Number(link.hash.slice('#step-'.length)));
    };
    document.addEventListener('click', onClick);
    return () => document.removeEventListener('click', onClick);
  }, [goTo]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new target scrolls
  useLayoutEffect(() => {
    const element = target && place.current?.querySelector(`[data-seqs~="${target.seq}"]`);
    if (element) arrive(element);
  }, [target]);
  return { target, goTo, error };
}
