/** A comment on a changed line, which becomes a part of the next message to the agent. */
import { visibleText } from '@runyard/contract/wire/visible';
import { type ChangeEvent, type FormEvent, type KeyboardEvent, useState } from 'react';
import { Row } from '../../../parts/blocks.tsx';
import { Button, Input } from '../../../parts/controls.tsx';
import type { DiffLine } from '../../../parts/diff.tsx';
import styles from './changes.module.css';

/** Maximum number of characters of a line that a comment quotes. */
const maxQuoted = 300;

/** Returns a fence that is longer than each row of backticks in the text, so that the text cannot end it (CommonMark, 4.5 and 6.1). */
const fenceOf = (text: string, least: number): string =>
  '`'.repeat(Math.max(least, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));

function code(text: string): string {
  const fence = fenceOf(text, 1);
  const space = text.startsWith('`') || text.endsWith('`') ? ' ' : '';
  return fence + space + text + space + fence;
}

/**
 * Returns the text of a comment for the message: file and number of the line, the line itself, and the comment. Path and line come from the
 * agent, so they are quoted as code, and invisible characters are marked.
 */
export function commentText(path: string, { kind, number, text }: DiffLine, comment: string): string {
  const where = `${kind === 'del' ? 'deleted line' : 'line'} ${number}`;
  const cut = text.length > maxQuoted ? `${text.slice(0, maxQuoted)}…` : text;
  const line = visibleText(cut).replaceAll(/[\r\n]/g, ' ');
  const fence = fenceOf(line, 3);
  return `${code(visibleText(path).replaceAll(/\s/g, ' '))}, ${where}:\n${fence}\n${line}\n${fence}\n${comment.trim()}\n`;
}

/** The field below a line. `add` gets the text of the comment. */
export function LineComment({
  path,
  line,
  add,
  close,
}: {
  path: string;
  line: DiffLine;
  add: (text: string) => void;
  close: () => void;
}) {
  const [comment, setComment] = useState('');
  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    if (comment.trim() === '') return;
    add(commentText(path, line, comment));
    close();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') close();
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit();
  };
  return (
    <form className={styles.reply} onSubmit={submit}>
      <Input
        as="textarea"
        autoFocus
        rows={2}
        aria-label={`Comment on line ${line.number}`}
        placeholder="What should the agent change here?"
        value={comment}
        onChange={({ target }: ChangeEvent<HTMLTextAreaElement>) => setComment(target.value)}
        onKeyDown={onKeyDown}
      />
      <Row>
        <Button kind="primary" small type="submit" disabled={comment.trim() === ''}>
          Add to the message
        </Button>
        <Button kind="ghost" small onClick={close}>
          Cancel
        </Button>
      </Row>
    </form>
  );
}
