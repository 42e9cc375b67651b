import type { BlockedOn } from '@runyard/contract/runs/approvals';
import type { RunItem } from '@runyard/contract/runs/runs';
import { visible } from '@runyard/contract/wire/visible';
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { useClient, useMay } from '../../api/session.ts';
import { CodeBlock, Hint, Row, Text } from '../../parts/blocks.tsx';
import { Button, Input } from '../../parts/controls.tsx';
import { CopyButton } from '../../parts/copy.tsx';
import { Diff, type DiffLine } from '../../parts/diff.tsx';
import { StateBadge } from '../../parts/icon.tsx';
import { keyText, useKeys } from '../../parts/keys.ts';
import { Markdown } from '../../parts/markdown/markdown.tsx';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Lasting } from '../../parts/time.tsx';
import styles from './approval.module.css';
import { places } from './step-words.ts';

/**
 * The buttons of a new question work only after this number of milliseconds, because the second click of a double click was meant for the
 * previous question.
 */
const readMs = 600;

/**
 * Returns the parts of the action that the title does not show: the command, if it differs from the title, its working directory, the diff of
 * a change of files, and all other members.
 */
function unshownInput({ title, action }: BlockedOn): {
  readonly command?: string;
  readonly directory?: string;
  readonly diff?: string;
  readonly others?: unknown;
} {
  const input = action?.input;
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return { others: input };
  const { command = title, diff = '', ...others } = input as Readonly<Record<string, unknown>>;
  if (typeof command !== 'string' || typeof diff !== 'string') return { command: title, others: input };
  const place = places.find((name) => typeof others[name] === 'string');
  const { [place ?? '']: directory, ...rest } = others;
  return {
    command,
    diff,
    ...(typeof directory === 'string' ? { directory } : {}),
    ...(Object.keys(rest).length > 0 ? { others: rest } : {}),
  };
}

/** Returns every line of a diff, also lines that a patch program skips: a person must see all of what the agent asks for. */
const everyLine = (diff: string): DiffLine[] =>
  diff
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => {
      const kind = /^(?:\+\+\+|---|[^-+ ])/.test(line)
        ? 'hunk'
        : line.startsWith('+')
          ? 'add'
          : line.startsWith('-')
            ? 'del'
            : 'same';
      return { kind, number: undefined, text: kind === 'hunk' ? line : line.slice(1) };
    });

/** Returns what the agent asks for, as a title. */
function titleOf({ kind, action, enforced_by: holder }: BlockedOn): string {
  if (kind !== 'permission') return 'The agent asks you';
  if (holder !== undefined)
    return holder === 'gateway' ? 'The agent asks to push' : 'The agent asks to connect to a host';
  return action?.category === 'command' ? 'The agent asks to run a command' : 'The agent asks for your permission';
}

/**
 * Shows the request of the agent to a person, with the whole input of the action. The answer contains the id of the request, so that
 * it never counts as the answer to another request.
 */
export function Approval({ run, asked, refresh }: { run: RunItem; asked: BlockedOn; refresh: () => Promise<void> }) {
  const client = useClient();
  const may = useMay('member');
  const [isReadable, setReadable] = useState(false);
  const [isSending, setSending] = useState(false);
  const [isDenying, setDenying] = useState(false);
  const [words, setWords] = useState('');
  const [error, setError] = useState<unknown>();
  // One idempotency key for each answer, so that a repeated click on the same answer has only one effect, and another answer is a new
  // request.
  const keys = useRef(new Map<string, string>());
  const heading = useId();
  const reason = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (isDenying) reason.current?.focus();
  }, [isDenying]);

  useEffect(() => {
    const timer = setTimeout(() => setReadable(true), readMs);
    return () => clearTimeout(timer);
  }, []);

  const respond = async (answer: { decision?: 'approve' | 'deny'; allow_for?: 'run'; message?: string }) => {
    if (!isReadable || isSending || !may) return;
    setSending(true);
    setError(undefined);
    const text = JSON.stringify(answer);
    const key = keys.current.get(text) ?? crypto.randomUUID();
    keys.current.set(text, key);
    try {
      await client.sendFollowup({
        params: { runId: run.run_id },
        body: { ...answer, request_id: asked.request_id },
        headers: { 'idempotency-key': key },
      });
    } catch (failure) {
      setError(failure);
    }
    await refresh();
    setSending(false);
  };
  const deny = () => {
    if (isDenying) void respond({ decision: 'deny', ...(words.trim() === '' ? {} : { message: words.trim() }) });
    else setDenying(true);
  };
  const isPermission = asked.kind === 'permission';
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    deny();
  };
  useKeys(
    isPermission
      ? [
          {
            key: 'mod+Enter',
            does: 'Approve',
            // The keyboard shortcut does nothing in a text field, because a person who writes the reason for a denial must not approve by
            // accident.
            run: ({ target }) =>
              target instanceof HTMLTextAreaElement || isDenying || void respond({ decision: 'approve' }),
          },
          { key: 'd', does: 'Deny', run: () => may && setDenying(true) },
        ]
      : [],
  );
  const disabled = !isReadable || isSending;
  const { command, directory, diff, others } = unshownInput(asked);
  return (
    <section className={styles.card} aria-labelledby={heading}>
      <div className={styles.head}>
        <StateBadge state="BLOCKED" />
        <Text id={heading} as="h2" grow>
          {titleOf(asked)}
        </Text>
        <Text tone="wait" small>
          waits <Lasting from={asked.asked_at} to={undefined} />
        </Text>
      </div>
      <div className={styles.body}>
        {isPermission ? (
          <>
            {asked.action && (
              <Hint as="p">
                {`Tool: ${visible(asked.action.name)}`}
                {directory !== undefined && (
                  <>
                    , in <code>{visible(directory)}</code>
                  </>
                )}
              </Hint>
            )}
            {command !== asked.title && <p>{visible(asked.title)}</p>}
            {command !== undefined && (
              <CodeBlock>
                <pre>{visible(command)}</pre>
                <CopyButton text={command} what="Copy command" />
              </CodeBlock>
            )}
            {others !== undefined && (
              <CodeBlock>
                <pre>{visible(JSON.stringify(others, null, 2))}</pre>
              </CodeBlock>
            )}
            {diff && <Diff lines={everyLine(diff)} first={Number.POSITIVE_INFINITY} />}
          </>
        ) : (
          <Markdown text={asked.title} />
        )}
        {!isPermission && (asked.options ?? []).length > 0 && (
          <Row wrap>
            {asked.options?.map((option) => (
              <RoleButton key={option} needs="member" disabled={disabled} run={() => void respond({ message: option })}>
                {visible(option)}
              </RoleButton>
            ))}
          </Row>
        )}
        {isDenying && (
          <Input
            ref={reason}
            as="textarea"
            rows={2}
            aria-label="Reason, or what to do instead"
            placeholder="Reason, or what to do instead (optional)"
            value={words}
            onChange={({ target }) => setWords(target.value)}
            onKeyDown={onKeyDown}
          />
        )}
        <Row as="p" wrap>
          {isPermission && (
            <>
              {!isDenying && (
                <RoleButton
                  needs="member"
                  kind="primary"
                  disabled={disabled}
                  run={() => void respond({ decision: 'approve' })}
                >
                  Approve <kbd>{keyText('mod+Enter')}</kbd>
                </RoleButton>
              )}
              {!isDenying && asked.rest_of_run !== undefined && (
                <RoleButton
                  needs="member"
                  disabled={disabled}
                  run={() => void respond({ decision: 'approve', allow_for: 'run' })}
                >
                  Approve for the rest of the run
                </RoleButton>
              )}
              <RoleButton needs="member" kind={isDenying ? 'danger' : undefined} disabled={disabled} run={deny}>
                {isDenying ? 'Deny' : 'Deny…'}
                {!isDenying && <kbd>D</kbd>}
              </RoleButton>
              {isDenying && (
                <Button kind="ghost" onClick={() => setDenying(false)}>
                  Back
                </Button>
              )}
            </>
          )}
          <Hint grow notNarrow>
            {may
              ? `${isPermission ? 'Counts' : 'Write your answer below. It counts'} for this request only. A later answer starts a new sandbox with the same files.`
              : 'Your role in this team is viewer: a member can answer.'}
          </Hint>
        </Row>
        {isPermission && (
          <Hint as="p">
            {asked.enforced_by === undefined
              ? 'Advice: the agent asks in its own words. A script or an alias can do the same without a question.'
              : `Enforced: the ${asked.enforced_by} holds this action until you decide, and wrote this request.`}
            {asked.rest_of_run !== undefined && ` For the rest of the run: ${visible(asked.rest_of_run)}.`}
          </Hint>
        )}
        <Problem error={error} />
      </div>
    </section>
  );
}
