/** Shows the entries of a conversation: messages, actions and questions. */

import { decisionOpening } from '@runyard/contract/runs/decision-opening';
import { visibleText } from '@runyard/contract/wire/visible';
import { memo, useState } from 'react';
import { useClient } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { CopyButton } from '../../parts/copy.tsx';
import { compareTexts, Diff } from '../../parts/diff.tsx';
import { durationText } from '../../parts/format.ts';
import { Icon, type IconName } from '../../parts/icon.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Markdown } from '../../parts/markdown/markdown.tsx';
import { usePrinted } from '../../parts/printing.ts';
import { Problem } from '../../parts/problem.tsx';
import { Terminal } from '../../parts/terminal.tsx';
import { Lasting } from '../../parts/time.tsx';
import { DownloadButton } from './artifacts.tsx';
import { type ActionEntry, type Entry, type RequestEntry, type TextEntry, textOf } from './entry.ts';
import { Notice } from './notice.tsx';
import styles from './run.module.css';
import { Turn } from './turn.tsx';

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
  return entries.map((entry) => <Shown key={entry.id} entry={entry} runId={runId} author={author} />);
});

const Shown = memo(function Shown({ entry, runId, author }: { entry: Entry; runId: string; author: string }) {
  switch (entry.kind) {
    case 'text':
      return <Said entry={entry} runId={runId} author={author} />;
    case 'action':
      return (
        <Turn at={entry.at}>
          <Action entry={entry} runId={runId} />
        </Turn>
      );
    case 'request':
      return (
        <Turn at={entry.at}>
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
      <Turn at={entry.at}>
        <details className={styles.notice}>
          <summary className="small dim">The agent continues after the decision</summary>
          <Markdown text={entry.text} />
        </details>
      </Turn>
    );
  return (
    <Turn at={entry.at}>
      {isPrompt ? (
        <div className="ask-box">
          <div className="who">{visibleText(author)}</div>
          <Markdown text={entry.text} />
        </div>
      ) : (
        <Markdown text={entry.text} />
      )}
      <Whole entry={entry} runId={runId} />
    </Turn>
  );
}

/** Shows a button that reads the whole text of a message, because the page has only a part of it. */
function Whole({ entry, runId }: { entry: TextEntry | ActionEntry; runId: string }) {
  const client = useClient();
  const [whole, setWhole] = useState<string>();
  const { error, attempt } = useAttempts();
  if (entry.shortened === undefined) return null;
  const messageSeq = String(entry.shortened);
  const read = async () => {
    await attempt(async () => {
      const { steps } = await client.getRunMessage({ params: { runId, messageSeq } });
      const blocks = steps.flatMap(({ messages }) => messages.flatMap(({ content }) => content));
      setWhole(
        blocks
          .map((block) =>
            block.type === 'text'
              ? block.text
              : block.type === 'action_result'
                ? block.output.text
                : textOf('input' in block ? block.input : block.data),
          )
          .join('\n'),
      );
    });
  };
  if (whole !== undefined) return <Terminal text={whole} />;
  return (
    <div>
      <button type="button" className="btn sm" onClick={() => void read()}>
        This is a part. Show all
      </button>
      <Problem error={error} />
    </div>
  );
}

const icons: Readonly<Record<string, IconName>> = {
  command: 'term',
  files: 'diff',
  search: 'search',
  integration: 'link',
  documents: 'file',
  computer: 'env',
  review: 'check',
  skill: 'book',
};

/** Returns the command of an action, or one line that describes the action. */
export function lineOf({ name, input }: { readonly name: string; readonly input: unknown }): string {
  if (typeof input !== 'object' || input === null) return textOf(input) || name;
  const members = input as Readonly<Record<string, unknown>>;
  for (const key of ['command', 'cmd', 'file_path', 'path', 'filePath', 'pattern', 'query', 'url']) {
    const value = members[key];
    if (typeof value === 'string') return value;
    if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.join(' ');
  }
  return name;
}

/**
 * Returns the text before and after the change that an action makes to a file; undefined if the input of the action does not have these
 * texts.
 */
function changeOf(entry: ActionEntry): { readonly before: string; readonly after: string } | undefined {
  if (entry.category !== 'files' || typeof entry.input !== 'object' || entry.input === null) return undefined;
  const input = entry.input as Readonly<Record<string, unknown>>;
  const path = input.file_path ?? input.path ?? input.filePath;
  const before = input.old_string ?? input.oldText ?? input.old_str ?? '';
  const after = input.new_string ?? input.newText ?? input.new_str ?? input.content;
  return typeof path === 'string' && typeof before === 'string' && typeof after === 'string'
    ? { before, after }
    : undefined;
}

function Action({ entry, runId }: { entry: ActionEntry; runId: string }) {
  const isOver = ['completed', 'denied', 'interrupted'].includes(entry.state);
  const [isOpen, setOpen] = useState<boolean | undefined>();
  // The details of an action are open while the action runs and if it failed. After the reader has opened or closed the details, only the
  // reader's choice counts.
  const open = usePrinted() || (isOpen ?? !isOver);
  const change = changeOf(entry);
  return (
    <details className="act" open={open} data-state={entry.state}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a summary is a button */}
      <summary
        onClick={(event) => {
          event.preventDefault();
          setOpen(!open);
        }}
      >
        <Icon name={icons[entry.category] ?? 'bolt'} small />
        <span className="mono cut grow">{visibleText(lineOf(entry).split('\n', 1)[0] ?? '')}</span>
        <ActionEnd entry={entry} />
      </summary>
      {open && (
        <>
          {change ? <Diff lines={compareTexts(change.before, change.after)} /> : <Input entry={entry} />}
          {entry.output !== '' && <Terminal text={entry.output} />}
          <Whole entry={entry} runId={runId} />
          {entry.outputUid !== undefined && (
            <p className="row small">
              The conversation has only a part of this output. <DownloadButton uid={entry.outputUid} />
            </p>
          )}
        </>
      )}
    </details>
  );
}

function ActionEnd({ entry }: { entry: ActionEntry }) {
  if (entry.state === 'running')
    return (
      <span className="row small accc">
        <span className="dot pulse" aria-hidden="true" />
        <span>
          running <Lasting from={entry.at} to={undefined} />
        </span>
      </span>
    );
  const duration =
    entry.durationMs === undefined ? null : <span className="dim small">{durationText(entry.durationMs)}</span>;
  const isBad = entry.state === 'failed' || (entry.exitCode ?? 0) !== 0;
  return (
    <>
      {entry.state === 'waiting' && <span className="waitc small">waits for an answer</span>}
      {entry.state === 'interrupted' && <span className="dim small">interrupted</span>}
      {entry.state === 'denied' && <span className="badc small">denied</span>}
      {isBad && (
        <span className="badc small">{entry.exitCode === undefined ? 'failed' : `exit ${entry.exitCode}`}</span>
      )}
      {duration}
    </>
  );
}

/** Shows the parts of an action's input that the line of the action does not show: further lines of a command, and other arguments. */
function Input({ entry }: { entry: ActionEntry }) {
  const line = lineOf(entry);
  const { input } = entry;
  const others =
    typeof input === 'object' && input !== null
      ? Object.fromEntries(Object.entries(input).filter(([, value]) => value !== line))
      : {};
  return (
    <>
      {line.includes('\n') && (
        <div className="code">
          <pre>{visibleText(line)}</pre>
          <CopyButton text={line} what="Copy command" className="copy" />
        </div>
      )}
      {Object.keys(others).length > 0 && <JsonView value={others} />}
    </>
  );
}

const words: Readonly<Record<string, string>> = { approve: 'Approved', deny: 'Denied', answer: 'Answered' };

function Asked({ entry }: { entry: RequestEntry }) {
  const { outcome } = entry;
  // Do not repeat an open permission request here, because the action before it and the buttons below the conversation show the whole
  // request.
  const isShownElsewhere = outcome === undefined && !entry.isQuestion;
  return (
    <div className={styles.asked}>
      <p className="row top">
        <Icon name="ask" small />
        <span className="grow">
          {entry.isQuestion ? (
            <Markdown text={entry.title} />
          ) : isShownElsewhere ? (
            'Asks for permission'
          ) : (
            <code>{visibleText(entry.title)}</code>
          )}
        </span>
      </p>
      {outcome && (
        <p className="small mut">
          {`${words[outcome.decision] ?? outcome.decision} by ${visibleText(outcome.by)}`}
          {outcome.message && `: ${visibleText(outcome.message)}`}
        </p>
      )}
    </div>
  );
}
