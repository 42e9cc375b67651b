import type { RunItem } from '@runyard/contract/runs/runs';
import { useEffect, useLayoutEffect, useRef, useState, useSyncExternalStore } from 'react';
import { Icon } from '../../parts/icon.tsx';
import { Markdown } from '../../parts/markdown/markdown.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Block, WatchedBlocks } from './block.tsx';
import { Entries } from './entries.tsx';
import styles from './run.module.css';
import type { FollowedRun } from './use-run.ts';

/** The reader counts as being at the end if the view is at most this many pixels away from the end. */
const nearPx = 48;

/** Returns the element that scrolls the conversation: the conversation itself, or the whole screen on narrow pages. */
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
  const { story: source, storyError, isReading, readOlder } = followed;
  const story = useSyncExternalStore(source.subscribe, source.view);
  const place = useRef<HTMLDivElement>(null);
  // The view of a failed run begins at the top, because the page shows the reason for the failure there.
  const beginsAtEnd = run.state !== 'FAILED' && run.state !== 'ERROR';
  const isAtEnd = useRef(beginsAtEnd);
  const heightBefore = useRef<number | undefined>(undefined);
  /** Number of entries when the reader left the end; undefined while the reader is at the end. */
  const [seen, setSeen] = useState(beginsAtEnd ? undefined : 0);
  const [error, setError] = useState<unknown>();
  const fresh = seen === undefined ? 0 : story.count - seen;

  // biome-ignore lint/correctness/useExhaustiveDependencies: an older page changes the story
  useLayoutEffect(() => {
    if (heightBefore.current === undefined) return;
    const scroller = scrollerOf(place.current);
    // An older page was inserted above the visible part. Scroll by the height of this page, so that the reader sees the same entries as
    // before.
    if (scroller !== null) scroller.scrollTop += scroller.scrollHeight - heightBefore.current;
    heightBefore.current = undefined;
  }, [story]);

  // Scroll to the end again when the height of the content or of the view changes. The content changes when entries are added, texts
  // are rendered or blocks come near the visible part. The view changes when a question appears below it. The observer is called after
  // the layout of a frame, so the scrolling needs no additional layout.
  useLayoutEffect(() => {
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
      // The reader leaves the end only by scrolling up. If the distance to the end has grown without scrolling up, new content has
      // arrived, so the view continues to follow the end.
      if (scrollHeight - scrollTop - clientHeight < nearPx) isAtEnd.current = true;
      else if (scrollTop < before) isAtEnd.current = false;
      before = scrollTop;
      const isNowAtEnd = isAtEnd.current;
      const { count } = source.view();
      setSeen((earlier) => (isNowAtEnd ? undefined : (earlier ?? count)));
    };
    scroller?.addEventListener('scroll', onScroll, { passive: true });
    return () => scroller?.removeEventListener('scroll', onScroll);
  }, [source]);
  const toEnd = () => {
    isAtEnd.current = true;
    const scroller = scrollerOf(place.current);
    scroller?.scrollTo({ top: scroller.scrollHeight });
    setSeen(undefined);
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
      {fresh > 0 && (
        <button type="button" className={`btn sm ${styles.jump}`} onClick={toEnd}>
          <Icon name="down" small />
          {`${fresh} new`}
        </button>
      )}
    </div>
  );
}
