/** Shows the entries of a conversation: messages, actions and questions. */

import { decisionOpening } from '@runyard/contract/runs/decision-opening';
import { visibleText } from '@runyard/contract/wire/visible';
import { memo, use, useState } from 'react';
import { Badge, CardBody, Hint, P, Quote, Row, Stack, Text } from '../../parts/blocks.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Markdown } from '../../parts/markdown/markdown.tsx';
import { usePrinted } from '../../parts/printing.ts';
import { Action } from './action.tsx';
import type { ActionEntry, Entry, RequestEntry, TextEntry } from './entry.ts';
import { foldReads, withoutRepeats } from './folded-entries.ts';
import { Notice } from './notice.tsx';
import styles from './run.module.css';
import { readingWords, stepWords } from './step-words.ts';
import talk from './talk.module.css';
import { TargetContext } from './target.ts';
import { Turn } from './turn.tsx';
import { Whole } from './whole.tsx';

/** Shows some entries. The component is rendered again only if one of these entries has changed. */
export const Entries = memo(function Entries({
  entries,
  runId,
  author,
}: {
  entries: readonly Entry[];
  runId: string;
  author: string;
}) {
  return foldReads(withoutRepeats(entries)).map((item) =>
    item.kind === 'reads' ? (
      <Reads key={item.id} entries={item.entries} runId={runId} />
    ) : (
      <Shown key={item.id} entry={item} runId={runId} author={author} />
    ),
  );
});

/** Shows neighbouring actions that only read as one line, which opens to the actions. */
function Reads({ entries, runId }: { entries: readonly ActionEntry[]; runId: string }) {
  const [isOpen, setOpen] = useState<boolean>();
  const isPrinted = usePrinted();
  const target = use(TargetContext);
  const open = (isOpen ?? entries.some(({ seq }) => seq === target)) || isPrinted;
  const words = entries.map(stepWords);
  return (
    <Turn at={entries[0]?.at} seqs={entries.map(({ seq }) => seq)}>
      <details className={styles.act} data-part="reads" open={open}>
        {/* biome-ignore lint/a11y/noStaticElementInteractions: a summary is a button */}
        <summary
          onClick={(event) => {
            event.preventDefault();
            setOpen(!open);
          }}
        >
          <Icon name="search" small />
          <Text className={talk.verb}>{readingWords(words.map(({ kind }) => kind))}</Text>
          <Hint mono cut grow>
            {visibleText(words.map(({ object }) => object?.split('/').at(-1)).join(', '))}
          </Hint>
        </summary>
        {open && (
          <CardBody as={Stack} gap={2}>
            {entries.map((entry) => (
              <Action key={entry.id} entry={entry} runId={runId} />
            ))}
          </CardBody>
        )}
      </details>
    </Turn>
  );
}

const Shown = memo(function Shown({ entry, runId, author }: { entry: Entry; runId: string; author: string }) {
  switch (entry.kind) {
    case 'text':
      return <Said entry={entry} runId={runId} author={author} />;
    case 'action':
      return (
        <Turn at={entry.at} seqs={[entry.seq]}>
          <Action entry={entry} runId={runId} />
        </Turn>
      );
    case 'request':
      return (
        <Turn at={entry.at} seqs={[entry.seq]}>
          <Asked entry={entry} />
        </Turn>
      );
    case 'notice':
      return <Notice entry={entry} />;
  }
});

function Said({ entry, runId, author }: { entry: TextEntry; runId: string; author: string }) {
  if (entry.text.trim() === '') return null;
  const isPrompt = entry.role === 'user';
  // The agent wrote this text for its harness. The decision itself stands at the request, with the name of the person.
  if (isPrompt && entry.text.startsWith(decisionOpening))
    return (
      <Turn at={entry.at} seqs={[entry.seq]}>
        <details className={talk.notice}>
          <Text as="summary" tone="dim" small>
            The agent continues after the decision
          </Text>
          <Markdown text={entry.text} />
        </details>
      </Turn>
    );
  return (
    <Turn at={entry.at} seqs={[entry.seq]}>
      {isPrompt ? (
        <Quote>
          <Row className={talk.who} data-part="author">
            {visibleText(entry.by ?? author)}
            {entry.mode !== undefined && <Badge>{entry.mode}</Badge>}
          </Row>
          <Markdown text={entry.text} />
        </Quote>
      ) : (
        <Markdown text={entry.text} />
      )}
      <Whole entry={entry} runId={runId} />
    </Turn>
  );
}

const words: Readonly<Record<string, string>> = { approve: 'Approved', deny: 'Denied', answer: 'Answered' };

function Asked({ entry }: { entry: RequestEntry }) {
  const { outcome } = entry;
  // Do not repeat an open permission request here, because the action before it and the buttons below the conversation show the whole
  // request.
  const isShownElsewhere = outcome === undefined && !entry.isQuestion;
  return (
    <div className={talk.asked}>
      <Row as="p" top>
        <Icon name="ask" small />
        <Text grow>
          {entry.isQuestion ? (
            <Markdown text={entry.title} />
          ) : isShownElsewhere ? (
            'Asks for permission'
          ) : (
            <code>{visibleText(entry.title)}</code>
          )}
        </Text>
      </Row>
      {outcome && (
        <P tone="muted" small>
          {`${words[outcome.decision] ?? outcome.decision} by ${visibleText(outcome.by)}`}
          {outcome.message && `: ${visibleText(outcome.message)}`}
        </P>
      )}
    </div>
  );
}
