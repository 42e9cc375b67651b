import type { RunItem } from '@runyard/contract/runs/runs';
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import { Icon } from '../../parts/icon.tsx';
import { Markdown } from '../../parts/markdown/markdown.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Block, WatchedBlocks } from './block.tsx';
import { Entries } from './entries.tsx';
import styles from './run.module.css';
import type { FollowedRun } from './use-run.ts';

/** A reader within so many pixels of the end reads the end. */
const nearPx = 48;

/** Returns the element that scrolls the conversation: its own, or on narrow pages the whole screen. */
function scrollerOf(place: HTMLElement | null): HTMLElement | null {
  if (place === null || getComputedStyle(place).overflowY !== 'visible') return place;
  return document.getElementById('main');
}

/** Shows the conversation. The view follows the end of the conversation only while the reader is at the end. */
export function Conversation({
  followed,
  run,
  children,
}: {
  followed: FollowedRun;
  run: RunItem;
  children?: React.ReactNode;
}) {
  const { story, storyError, isReading, readOlder } = followed;
  const place = useRef<HTMLDivElement>(null);
  // A run that failed begins with why it did.
  const isAtEnd = useRef(run.state !== 'FAILED' && run.state !== 'ERROR');
  const heightBefore = useRef<number | undefined>(undefined);
  const [seen, setSeen] = useState(0);
  const [error, setError] = useState<unknown>();
  const fresh = Math.max(0, story.count - seen);

  useLayoutEffect(() => {
    const scroller = scrollerOf(place.current);
    if (scroller === null) return;
    if (heightBefore.current !== undefined) {
      // An older page was inserted above the position of the reader.
      scroller.scrollTop += scroller.scrollHeight - heightBefore.current;
      heightBefore.current = undefined;
    } else if (isAtEnd.current) scroller.scrollTop = scroller.scrollHeight;
    if (isAtEnd.current) setSeen(story.count);
  }, [story]);

  // Texts change their height when they are rendered, and blocks when the reader comes near them. A question below takes room from the view.
  useEffect(() => {
    const content = place.current?.firstElementChild;
    if (!place.current || !content) return;
    const observer = new ResizeObserver(() => {
      const scroller = scrollerOf(place.current);
      if (scroller !== null && isAtEnd.current) scroller.scrollTop = scroller.scrollHeight;
    });
    observer.observe(content);
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const scroller = scrollerOf(place.current);
    let before = scroller?.scrollTop ?? 0;
    const onScroll = () => {
      if (scroller === null) return;
      const { scrollTop, scrollHeight, clientHeight } = scroller;
      // Only a reader who scrolls up leaves the end: the content may have grown since the scroll that this event reports.
      if (scrollHeight - scrollTop - clientHeight < nearPx) isAtEnd.current = true;
      else if (scrollTop < before) isAtEnd.current = false;
      before = scrollTop;
      if (isAtEnd.current) setSeen(story.count);
    };
    scroller?.addEventListener('scroll', onScroll, { passive: true });
    return () => scroller?.removeEventListener('scroll', onScroll);
  }, [story.count]);
  const toEnd = () => {
    isAtEnd.current = true;
    const scroller = scrollerOf(place.current);
    scroller?.scrollTo({ top: scroller.scrollHeight });
    setSeen(story.count);
  };
  const older = async () => {
    setError(undefined);
    heightBefore.current = scrollerOf(place.current)?.scrollHeight;
    try {
      await readOlder();
    } catch (failure) {
      heightBefore.current = undefined;
      setError(failure);
    }
  };
  const author = run.creator?.display_name ?? run.creator?.uid ?? 'Prompt';
  return (
    <div className={styles.talk}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls the conversation */}
      <div className="scroll" tabIndex={0} ref={place}>
        <div className="flow" role="log" aria-label="Conversation" aria-live="off">
          {children}
          <Problem error={storyError} />
          {story.older !== undefined && (
            <button type="button" className={`btn sm ${styles.older}`} onClick={() => void older()}>
              Earlier messages
            </button>
          )}
          <Problem error={error} />
          <WatchedBlocks place={place} scrollerOf={scrollerOf}>
            {story.blocks.map(({ number, entries }, index) => (
              <Block key={number} isNearAtFirst={index >= story.blocks.length - 2}>
                <Entries entries={entries} runId={run.run_id} author={author} />
              </Block>
            ))}
          </WatchedBlocks>
          {!isReading && story.count === 0 && (
            <section className="stack s2">
              <h2>Prompt, which no agent has begun</h2>
              <div className="ask-box mut">
                <Markdown text={run.prompt ?? ''} />
              </div>
            </section>
          )}
        </div>
      </div>
      {fresh > 0 && !isAtEnd.current && (
        <button type="button" className={`btn sm ${styles.jump}`} onClick={toEnd}>
          <Icon name="down" small />
          {`${fresh} new`}
        </button>
      )}
    </div>
  );
}
