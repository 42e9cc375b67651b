import type { FollowupAttachment } from '@runyard/contract/runs/run-request';
import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import { type FormEvent, type KeyboardEvent, useEffect, useRef, useState } from 'react';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { clockText, sizeText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { useKeys } from '../../parts/keys.ts';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { keepDraft, readDraft } from './draft.ts';
import { hasForeignTexts } from './facts.tsx';
import styles from './run.module.css';

/** Maximum number of files of a message. The request contains the bytes of these files. */
const mostFiles = 5;
/** Maximum number of bytes of one file of a message. */
const mostBytes = 10 * 1024 * 1024;

type Mode = 'normal' | 'plan' | 'orchestrate';
const modes: readonly Mode[] = ['normal', 'plan', 'orchestrate'];

/** Returns a sentence about the effect that a message to the run has in its current state. */
function hintOf(run: RunItem): string {
  if (run.blocked_on) return 'Or answer with a message, which the agent reads instead of a decision';
  if (run.status_message?.session_debug_until && !run.is_sandbox_running)
    return 'Message to an agent in the failed sandbox';
  if (run.state === 'INPROGRESS') return 'The agent reads it after this turn';
  return isTerminal(run.state)
    ? 'The agent continues the run with this message'
    : 'The message becomes part of the prompt, because the agent has not begun';
}

/** Returns a file in the form that the API accepts. A data URL has the base64 text after its first comma (RFC 2397). */
async function encode(file: File): Promise<FollowupAttachment> {
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  return {
    file_name: file.name,
    mime_type: file.type || 'application/octet-stream',
    data: url.slice(url.indexOf(',') + 1),
  };
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
  draft: string | undefined;
  refresh: () => Promise<void>;
}) {
  const client = useClient();
  const may = useMay('member');
  const field = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const { person } = useSession();
  const [text, setText] = useState(() => readDraft(person.uid, run.run_id));
  useEffect(() => keepDraft(person.uid, run.run_id, text), [person.uid, run.run_id, text]);
  const [files, setFiles] = useState<readonly File[]>([]);
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
    setText((before) => (before === '' ? draft : `${before}\n\n${draft}`));
    field.current?.focus();
  }, [draft]);

  const send = async (event?: FormEvent) => {
    event?.preventDefault();
    if (text.trim() === '' || isSending) return;
    setSending(true);
    setError(undefined);
    key.current ??= crypto.randomUUID();
    try {
      const attachments = await Promise.all(files.map(encode));
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
      setFiles([]);
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
  const add = (added: readonly File[]) => {
    const tooLarge = added.find(({ size }) => size > mostBytes);
    setError(
      tooLarge
        ? new Error(
            `${tooLarge.name} has ${sizeText(tooLarge.size)}; a file of a message has at most ${sizeText(mostBytes)}`,
          )
        : undefined,
    );
    setFiles([...files, ...added.filter(({ size }) => size <= mostBytes)].slice(0, mostFiles));
  };
  const until = run.status_message?.session_debug_until;
  return (
    <>
      <Problem error={error} />
      <form className="compose" aria-label="Message to the agent" onSubmit={(event) => void send(event)}>
        <label className="sr" htmlFor="message">
          Message to the agent
        </label>
        <textarea
          id="message"
          ref={field}
          rows={Math.min(8, text.split('\n').length)}
          placeholder={hintOf(run)}
          value={text}
          disabled={!may}
          onChange={({ target }) => setText(target.value)}
          onKeyDown={onKeyDown}
        />
        {files.length > 0 && (
          <div className={styles.attached}>
            {files.map((file, index) => (
              <span key={index} className="chip">
                {file.name} <span className="dim">{sizeText(file.size)}</span>
                <button
                  type="button"
                  className="btn ghost sm icon x"
                  aria-label={`Remove ${file.name}`}
                  onClick={() => setFiles(files.filter((each) => each !== file))}
                >
                  <Icon name="x" small />
                </button>
              </span>
            ))}
          </div>
        )}
        <div className="compose-f">
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            onChange={({ target }) => {
              add([...(target.files ?? [])]);
              target.value = '';
            }}
          />
          <RoleButton
            needs="member"
            className="btn ghost sm icon"
            label="Attach files"
            run={() => picker.current?.click()}
          >
            <Icon name="clip" small />
          </RoleButton>
          <label className="btn ghost sm pick">
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
            <label className="btn ghost sm pick">
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
            <span className="hint hide-m">A new sandbox, with only the changes of the repositories</span>
          )}
          {until && <span className="hint hide-m">{`until ${clockText(Date.parse(until))} here`}</span>}
          {!may && <span className="hint">A member of the team can send messages.</span>}
          <span className="right row">
            <RoleButton
              needs="member"
              className="btn pri sm icon"
              label="Send message"
              disabled={isSending || text.trim() === ''}
            >
              <Icon name="send" small />
            </RoleButton>
          </span>
        </div>
      </form>
    </>
  );
}
