import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from 'react';
import { draftsOf } from '../../api/drafts.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { encodeFile, FileChips, FilePicker, useAttachedFiles } from '../../parts/attached-files.tsx';
import { Hint, Row, Text } from '../../parts/blocks.tsx';
import { buttonLooked } from '../../parts/controls.tsx';
import { clockText } from '../../parts/format.ts';
import { useKeys } from '../../parts/keys.ts';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import styles from './composer.module.css';
import { hasForeignTexts } from './facts.tsx';

type Mode = 'normal' | 'plan' | 'orchestrate';
const modes: readonly Mode[] = ['normal', 'plan', 'orchestrate'];

/** Returns a sentence about the effect that a message to the run has in its current state. */
function hintOf(run: RunItem): string {
  if (run.blocked_on) return run.blocked_on.kind === 'question' ? 'Your answer' : 'Or a message instead of a decision';
  if (run.status_message?.session_debug_until && !run.is_sandbox_running)
    return 'Message to an agent in the failed sandbox';
  if (run.state === 'INPROGRESS') return 'The agent reads it after this turn';
  return isTerminal(run.state) ? 'A message continues the run' : 'A message becomes part of the prompt';
}

/** A text to add to the message. The same text can be added again as another object. */
export interface Draft {
  readonly text: string;
}

/** Returns the text that the person has typed for the run; empty if there is none, or if the browser forbids storage. */
function readDraft(person: string, run: string): string {
  try {
    return sessionStorage.getItem(draftsOf(person) + run) ?? '';
  } catch {
    return '';
  }
}

/** Keeps the text. An empty text removes the draft. */
function keepDraft(person: string, run: string, text: string): void {
  try {
    if (text === '') sessionStorage.removeItem(draftsOf(person) + run);
    else sessionStorage.setItem(draftsOf(person) + run, text);
  } catch {}
}

/**
 * The field in which a person writes a message with files to the run. `draft` is a text to add to the field, such as a comment on a changed
 * line.
 */
export function Composer({
  run,
  draft,
  refresh,
}: {
  run: RunItem;
  draft: Draft | undefined;
  refresh: () => Promise<void>;
}) {
  const client = useClient();
  const may = useMay('member');
  const field = useRef<HTMLTextAreaElement>(null);
  const { person } = useSession();
  const [text, setText] = useState(() => readDraft(person.uid, run.run_id));
  useEffect(() => keepDraft(person.uid, run.run_id, text), [person.uid, run.run_id, text]);
  const attached = useAttachedFiles();
  const { files } = attached;
  const [mode, setMode] = useState<Mode>('normal');
  const [beginsAnew, setBeginsAnew] = useState(false);
  const [error, setError] = useState<unknown>();
  const [isSending, setSending] = useState(false);
  // The idempotency key of the request. It stays the same until an answer has arrived or the message changes, so that a repeated request
  // sends the message only once.
  const key = useRef<string | undefined>(undefined);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a changed message is another request
  useEffect(() => {
    key.current = undefined;
  }, [text, files, mode, beginsAnew]);

  const canBeginAnew = hasForeignTexts(run) && (isTerminal(run.state) || run.state === 'BLOCKED');
  useKeys([{ key: 'm', does: 'Write a message', run: () => field.current?.focus() }]);
  useEffect(() => {
    if (draft === undefined) return;
    setText((before) => (before.trim() === '' ? draft.text : `${before.trimEnd()}\n\n${draft.text}`));
  }, [draft]);

  const send = async (event?: FormEvent) => {
    event?.preventDefault();
    if (text.trim() === '' || isSending) return;
    setSending(true);
    setError(undefined);
    key.current ??= crypto.randomUUID();
    try {
      const attachments = await Promise.all(files.map(encodeFile));
      await client.sendFollowup({
        params: { runId: run.run_id },
        body: {
          message: text,
          ...(mode === 'normal' ? {} : { mode }),
          ...(attachments.length === 0 ? {} : { attachments }),
          ...(canBeginAnew && beginsAnew
            ? { workspace: 'changes' as const }
            : run.blocked_on
              ? { request_id: run.blocked_on.request_id }
              : {}),
        },
        headers: { 'idempotency-key': key.current },
      });
      key.current = undefined;
      setText('');
      attached.clear();
      setMode('normal');
      setBeginsAnew(false);
      await refresh();
    } catch (failure) {
      setError(failure);
    }
    setSending(false);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void send(event as unknown as FormEvent);
  };
  const until = run.status_message?.session_debug_until;
  return (
    <>
      <Problem error={error ?? attached.problem} />
      <form className={styles.form} aria-label="Message to the agent" onSubmit={(event) => void send(event)}>
        <Text as="label" spoken htmlFor="message">
          Message to the agent
        </Text>
        <textarea
          id="message"
          ref={field}
          rows={Math.min(8, text.split('\n').length)}
          placeholder={hintOf(run)}
          value={text}
          disabled={!may}
          onChange={({ target }) => setText(target.value)}
          onKeyDown={onKeyDown}
          onPaste={attached.onPaste}
          onDrop={attached.onDrop}
        />
        {files.length > 0 && (
          <div className={styles.attached}>
            <FileChips {...attached} />
          </div>
        )}
        <div className={styles.foot}>
          <FilePicker add={attached.add}>
            {(choose) => <RoleButton needs="member" kind="ghost" small icon="clip" label="Attach files" run={choose} />}
          </FilePicker>
          <label {...buttonLooked({ kind: 'ghost', small: true, square: false, className: styles.pick })}>
            <span>Mode:</span>
            <select
              className={styles.mode}
              value={mode}
              disabled={!may}
              onChange={({ target }) => setMode(modes.find((each) => each === target.value) ?? 'normal')}
            >
              {modes.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
          {canBeginAnew && (
            <label {...buttonLooked({ kind: 'ghost', small: true, square: false, className: styles.pick })}>
              <input
                type="checkbox"
                checked={beginsAnew}
                disabled={!may}
                onChange={({ target }) => setBeginsAnew(target.checked)}
              />
              <span>Begin anew</span>
            </label>
          )}
          {canBeginAnew && beginsAnew && (
            <Hint notNarrow>A new sandbox, with only the changes of the repositories</Hint>
          )}
          {until && <Hint notNarrow>{`until ${clockText(Date.parse(until))} here`}</Hint>}
          {!may && <Hint>A member of the team can send messages.</Hint>}
          <Row as="span" right>
            <RoleButton
              needs="member"
              kind="primary"
              small
              icon="send"
              label="Send message"
              disabled={isSending || text.trim() === ''}
            />
          </Row>
        </div>
      </form>
    </>
  );
}
