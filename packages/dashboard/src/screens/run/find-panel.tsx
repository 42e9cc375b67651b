/** Finds texts, messages of people and failures in the whole conversation of a run. The service searches, so nothing must be loaded. */

import type { RunMatch } from '@runyard/contract/runs/conversation-find';
import { visibleText } from '@runyard/contract/wire/visible';
import { useInfiniteQuery } from '@tanstack/react-query';
import { type KeyboardEvent, type RefObject, useDeferredValue, useEffect, useState } from 'react';
import { useClient } from '../../api/session.ts';
import { Hint, Row, Segments, Text } from '../../parts/blocks.tsx';
import { Button, FindBox, FindInput } from '../../parts/controls.tsx';
import { clockText, countText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import type { IconName } from '../../parts/icons.ts';
import { Problem } from '../../parts/problem.tsx';
import styles from './find.module.css';

type Kind = 'any' | 'turn' | 'failure';
const kinds: readonly (readonly [Kind, string])[] = [
  ['any', 'All'],
  ['turn', 'Messages of people'],
  ['failure', 'Failures'],
];
const icons: Readonly<Record<RunMatch['kind'], IconName>> = {
  turn: 'people',
  text: 'agent',
  action: 'term',
  notice: 'bell',
  request: 'ask',
};

/** Milliseconds without typing after which the service is asked. */
const restMs = 200;

/** Returns a value after it has not changed for a short time. */
function useRested<T>(value: T): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), restMs);
    return () => clearTimeout(timer);
  }, [value]);
  return useDeferredValue(rested);
}

export function FindPanel({
  runId,
  words: early,
  goTo,
  toTop,
  toEnd,
  close,
}: {
  runId: string;
  /** What the person typed before the panel was loaded. */
  words: RefObject<string>;
  goTo: (seq: number) => Promise<void>;
  toTop: () => void;
  toEnd: () => void;
  close: () => void;
}) {
  const client = useClient();
  const [words, setWords] = useState(early.current);
  useEffect(() => {
    early.current = '';
  }, [early]);
  const [kind, setKind] = useState<Kind>('any');
  const [at, setAt] = useState<number>();
  const text = useRested(words.trim());
  const isAsked = text !== '' || kind !== 'any';
  const { data, error, fetchNextPage, hasNextPage, isFetching } = useInfiniteQuery({
    queryKey: ['find', runId, text, kind],
    enabled: isAsked,
    queryFn: async ({ pageParam, signal }) =>
      await client.findInRun({
        params: { runId },
        query: { kind, after: pageParam, limit: 50, ...(text === '' ? {} : { text }) },
        signal,
      }),
    initialPageParam: 0,
    getNextPageParam: ({ matches }) => (matches.length < 50 ? undefined : matches.at(-1)?.seq),
  });
  const matches = data?.pages.flatMap((page) => page.matches) ?? [];
  const count = data?.pages[0]?.count ?? 0;
  const go = (index: number) => {
    const match = matches[index];
    if (match === undefined) return;
    setAt(match.seq);
    void goTo(match.seq);
    if (index === matches.length - 1 && hasNextPage) void fetchNextPage();
  };
  const current = matches.findIndex(({ seq }) => seq === at);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') close();
    else if (event.key === 'Enter') go(event.shiftKey ? Math.max(0, current - 1) : current + 1);
    else return;
    event.preventDefault();
  };
  return (
    <search className={styles.find} aria-label="Find in the conversation">
      <Row wrap>
        <FindBox grow>
          <Icon name="search" small />
          <FindInput
            id="find"
            autoFocus
            grow
            maxLength={200}
            aria-label="Find in the conversation"
            placeholder="Find in the whole conversation"
            value={words}
            onChange={({ target }) => {
              setWords(target.value);
              setAt(undefined);
            }}
            onKeyDown={onKeyDown}
          />
        </FindBox>
        <Hint number role="status">
          {!isAsked
            ? ''
            : current >= 0
              ? `${current + 1} of ${count}`
              : isFetching
                ? 'Searching…'
                : count === 0
                  ? 'Nothing found'
                  : countText(count, 'place')}
        </Hint>
        <Button kind="ghost" small icon="x" aria-label="Close the search" onClick={close} />
      </Row>
      <Row wrap>
        <Segments role="group" aria-label="Kind">
          {kinds.map(([each, label]) => (
            <button key={each} type="button" aria-pressed={each === kind} onClick={() => setKind(each)}>
              {label}
            </button>
          ))}
        </Segments>
        <Button kind="ghost" small onClick={toTop}>
          Top
        </Button>
        <Button kind="ghost" small onClick={toEnd}>
          End
        </Button>
      </Row>
      <Problem error={error} />
      {isAsked && matches.length > 0 && (
        <ul className={styles.matches}>
          {matches.map(({ seq, kind: found, is_failed: isFailed, occurred_at: time, excerpt }, index) => (
            <li key={seq}>
              <button type="button" aria-current={seq === at ? 'true' : undefined} onClick={() => go(index)}>
                <Icon name={icons[found]} small />
                <Text cut grow tone={isFailed ? 'bad' : undefined}>
                  <Marked text={visibleText(excerpt.replace(/\s+/g, ' '))} words={visibleText(text)} />
                </Text>
                <Hint>{clockText(Date.parse(time))}</Hint>
              </button>
            </li>
          ))}
          {hasNextPage && (
            <li>
              <Button kind="ghost" small onClick={() => void fetchNextPage()}>
                More
              </Button>
            </li>
          )}
        </ul>
      )}
    </search>
  );
}

/** Marks the first place of the words in a text. */
function Marked({ text, words }: { text: string; words: string }) {
  const place = words === '' ? -1 : text.toLowerCase().indexOf(words.toLowerCase());
  if (place < 0) return text;
  return (
    <>
      {text.slice(0, place)}
      <mark>{text.slice(place, place + words.length)}</mark>
      {text.slice(place + words.length)}
    </>
  );
}
