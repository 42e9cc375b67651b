import type { RunItem } from '@runyard/contract/runs/runs';
import { useEffect, useLayoutEffect, useRef, useState, useSyncExternalStore } from 'react';
import { Quote, Stack } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { Markdown } from '../../parts/markdown/markdown.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Block, WatchedBlocks } from './block.tsx';
import { Entries } from './entries.tsx';
import { FindBar } from './find-bar.tsx';
import { QueuedMessages } from './queued.tsx';
import styles from './run.module.css';
import talk from './talk.module.css';
import { TargetContext, useTarget } from './target.ts';
import type { FollowedRun } from './use-run.ts';

/**
 * After an older page has arrived, the entry that the reader saw keeps its place for this many milliseconds, while the heights of the blocks
 * above it become known.
 */
const keepMs = 1_000;

/** The reader counts as being at the end if the view is at most this many pixels away from the end. */
const nearPx = 48;

/** Returns the element that scrolls the conversation: the conversation itself, or the whole screen on narrow pages. */
function scrollerOf(place: HTMLElement | null): HTMLElement | null {
  if (place === null || getComputedStyle(place).overflowY !== 'visible') return place;
  return document.getElementById('main');
}

/** Scrolls so that an entry has the place on the screen that it had before. */
function keepPlace(
  scroller: HTMLElement | null,
  kept: { readonly entry: Element; readonly top: number; readonly until: number } | undefined,
): void {
  if (scroller === null || kept === undefined || !kept.entry.isConnected || performance.now() > kept.until) return;
  scroller.scrollTop += kept.entry.getBoundingClientRect().top - kept.top;
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
  const beganAtEnd = useRef(beginsAtEnd);
  /** The first visible entry when the reader asked for an older page, with its place on the screen. */
  const kept = useRef<{ readonly entry: Element; readonly top: number; until: number } | undefined>(undefined);
  /** Number of added entries when the reader left the end; undefined while the reader is at the end. */
  const [seen, setSeen] = useState(beginsAtEnd ? undefined : 0);
  const [error, setError] = useState<unknown>();
  const fresh = seen === undefined ? 0 : story.added - seen;

  // biome-ignore lint/correctness/useExhaustiveDependencies: an older page changes the story
  useLayoutEffect(() => {
    // If an older page was inserted above the visible part, scroll so that the reader sees the same entries as before.
    keepPlace(scrollerOf(place.current), kept.current);
  }, [story]);

  // Scroll to the end again when the height of the content or of the view changes. The content changes when entries are added, texts
  // are rendered or blocks come near the visible part. The view changes when a question appears below it. The observer is called after
  // the layout of a frame, so the scrolling needs no additional layout.
  useLayoutEffect(() => {
    const content = place.current?.firstElementChild;
    if (!place.current || !content) return;
    const observer = new ResizeObserver(() => {
      const scroller = scrollerOf(place.current);
      if (scroller === null) return;
      if (isAtEnd.current) scroller.scrollTop = scroller.scrollHeight;
      else keepPlace(scroller, kept.current);
      // All entries are visible, so none of them is new.
      if (scroller.scrollHeight - scroller.clientHeight < nearPx) setSeen(undefined);
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
      const { added } = source.view();
      setSeen((earlier) => (isNowAtEnd ? undefined : (earlier ?? added)));
    };
    const letGo = () => {
      kept.current = undefined;
    };
    scroller?.addEventListener('scroll', onScroll, { passive: true });
    scroller?.addEventListener('wheel', letGo, { passive: true });
    scroller?.addEventListener('touchmove', letGo, { passive: true });
    return () => {
      scroller?.removeEventListener('scroll', onScroll);
      scroller?.removeEventListener('wheel', letGo);
      scroller?.removeEventListener('touchmove', letGo);
    };
  }, [source]);
  const {
    target,
    goTo,
    error: targetError,
  } = useTarget(followed, place, (element) => {
    isAtEnd.current = false;
    setSeen(source.view().added);
    element.scrollIntoView({ block: 'center' });
    for (const each of place.current?.querySelectorAll('[data-target]') ?? [])
      delete (each as HTMLElement).dataset.target;
    (element as HTMLElement).dataset.target = '';
    kept.current = { entry: element, top: element.getBoundingClientRect().top, until: performance.now() + keepMs };
  });
  const toTop = () => {
    const first = source.view().blocks[0]?.entries[0];
    void goTo(first === undefined || source.view().older !== undefined ? 1 : first.seq);
  };
  const toEnd = () => {
    kept.current = undefined;
    isAtEnd.current = true;
    const scroller = scrollerOf(place.current);
    scroller?.scrollTo({ top: scroller.scrollHeight });
    setSeen(undefined);
  };
  // When a run fails that the reader watches, show the reason. When the run is continued, follow it again.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a change of the state moves the view
  useEffect(() => {
    if (beganAtEnd.current === beginsAtEnd) return;
    beganAtEnd.current = beginsAtEnd;
    if (beginsAtEnd) toEnd();
    else if (isAtEnd.current) {
      isAtEnd.current = false;
      scrollerOf(place.current)?.scrollTo({ top: 0 });
    }
  }, [beginsAtEnd]);
  const older = async () => {
    setError(undefined);
    const top = scrollerOf(place.current)?.getBoundingClientRect().top ?? 0;
    const entry = [...(place.current?.querySelectorAll('[data-part=turn]') ?? [])].find(
      (each) => each.getBoundingClientRect().bottom > top,
    );
    kept.current = entry && { entry, top: entry.getBoundingClientRect().top, until: Number.POSITIVE_INFINITY };
    try {
      await readOlder();
      if (kept.current) kept.current.until = performance.now() + keepMs;
    } catch (failure) {
      kept.current = undefined;
      setError(failure);
    }
  };
  const author = run.creator?.display_name ?? run.creator?.uid ?? 'Prompt';
  return (
    <div className={talk.talk}>
      <FindBar runId={run.run_id} goTo={goTo} toTop={toTop} toEnd={toEnd} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls the conversation */}
      <div className={styles.scroll} data-part="scroll" tabIndex={0} ref={place}>
        <div className={styles.flow} role="log" aria-label="Conversation" aria-live="off">
          {children}
          <Problem error={storyError} />
          {story.older !== undefined && (
            <Button small className={talk.older} onClick={() => void older()}>
              Earlier messages
            </Button>
          )}
          <Problem error={error ?? targetError} />
          <TargetContext value={target?.seq}>
            <WatchedBlocks place={place} scrollerOf={scrollerOf}>
              {story.blocks.map(({ number, entries }, index) => (
                <Block
                  key={number}
                  isNearAtFirst={index >= story.blocks.length - 2}
                  isTarget={number === target?.block}
                >
                  <Entries entries={entries} runId={run.run_id} author={author} />
                </Block>
              ))}
            </WatchedBlocks>
          </TargetContext>
          <QueuedMessages run={run} refresh={followed.refresh} />
          {!isReading && story.count === 0 && (
            <Stack as="section" gap={2}>
              <h2>Prompt, which no agent has begun</h2>
              <Quote tone="muted">
                <Markdown text={run.prompt ?? ''} />
              </Quote>
            </Stack>
          )}
        </div>
      </div>
      {fresh > 0 && (
        <Button small icon="down" className={talk.jump} onClick={toEnd}>
          {`${fresh} new`}
        </Button>
      )}
    </div>
  );
}
