import type { BlockedOn } from '@runyard/contract/runs/approvals';
import type { RunItem } from '@runyard/contract/runs/runs';
import { visible } from '@runyard/contract/wire/visible';
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { useClient, useMay } from '../../api/session.ts';
import { CopyButton } from '../../parts/copy.tsx';
import { StateBadge } from '../../parts/icon.tsx';
import { keyText, useKeys } from '../../parts/keys.ts';
import { Markdown } from '../../parts/markdown/markdown.tsx';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Lasting } from '../../parts/time.tsx';

/**
 * The buttons of a new question work only after this number of milliseconds, because the second click of a double click was meant for the
 * previous question.
 */
const readMs = 600;

/**
 * Returns the parts of the action that the title does not show: the command, if it differs from the title, the diff of a change of files, and
 * all other members.
 */
function unshownInput({ title, action }: BlockedOn): {
  readonly command?: string;
  readonly diff?: string;
  readonly others?: unknown;
} {
  const input = action?.input;
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return { others: input };
  const { command = title, diff = '', ...others } = input as Readonly<Record<string, unknown>>;
  if (typeof command !== 'string' || typeof diff !== 'string') return { command: title, others: input };
  return { command, diff, ...(Object.keys(others).length > 0 ? { others } : {}) };
}

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
    if (isPermission) deny();
    else if (words.trim() !== '') void respond({ message: words.trim() });
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
  const { command, diff, others } = unshownInput(asked);
  return (
    <section className="approve" aria-labelledby={heading}>
      <div className="approve-h">
        <StateBadge state="BLOCKED" />
        <h2 id={heading} className="grow">
          {titleOf(asked)}
        </h2>
        <span className="small waitc">
          waits <Lasting from={asked.asked_at} to={undefined} />
        </span>
      </div>
      <div className="approve-b">
        {isPermission ? (
          <>
            {asked.action && <p className="small dim">{`Tool: ${visible(asked.action.name)}`}</p>}
            {command !== asked.title && <p>{visible(asked.title)}</p>}
            {command !== undefined && (
              <div className="code">
                <pre>{visible(command)}</pre>
                <CopyButton text={command} what="Copy command" className="copy" />
              </div>
            )}
            {others !== undefined && (
              <div className="code">
                <pre>{visible(JSON.stringify(others, null, 2))}</pre>
              </div>
            )}
            {diff && (
              <div className="code">
                <pre>{visible(diff)}</pre>
              </div>
            )}
          </>
        ) : (
          <Markdown text={asked.title} />
        )}
        {!isPermission && (asked.options ?? []).length > 0 && (
          <div className="row wrap">
            {asked.options?.map((option) => (
              <RoleButton key={option} needs="member" disabled={disabled} run={() => void respond({ message: option })}>
                {visible(option)}
              </RoleButton>
            ))}
          </div>
        )}
        {(isDenying || !isPermission) && (
          <textarea
            ref={reason}
            className="in"
            rows={2}
            aria-label={isPermission ? 'Reason, or what to do instead' : 'Your answer'}
            placeholder={isPermission ? 'Reason, or what to do instead (optional)' : 'Your answer'}
            value={words}
            onChange={({ target }) => setWords(target.value)}
            onKeyDown={onKeyDown}
          />
        )}
        <p className="row wrap">
          {isPermission ? (
            <>
              {!isDenying && (
                <RoleButton
                  needs="member"
                  className="btn pri"
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
              <RoleButton needs="member" className={`btn ${isDenying ? 'dan' : ''}`} disabled={disabled} run={deny}>
                {isDenying ? 'Deny' : 'Deny…'}
                {!isDenying && <kbd>D</kbd>}
              </RoleButton>
              {isDenying && (
                <button type="button" className="btn ghost" onClick={() => setDenying(false)}>
                  Back
                </button>
              )}
            </>
          ) : (
            <RoleButton
              needs="member"
              className="btn pri"
              disabled={disabled || words.trim() === ''}
              run={() => void respond({ message: words.trim() })}
            >
              Answer
            </RoleButton>
          )}
          <span className="hint grow hide-m">
            {may
              ? 'Counts for this request only. A later answer starts a new sandbox with the same files.'
              : 'Your role in this team is viewer: a member can answer.'}
          </span>
        </p>
        {isPermission && (
          <p className="hint">
            {asked.enforced_by === undefined
              ? 'Advice: the agent asks in its own words. A script or an alias can do the same without a question.'
              : `Enforced: the ${asked.enforced_by} holds this action until you decide, and wrote this request.`}
            {asked.rest_of_run !== undefined && ` For the rest of the run: ${visible(asked.rest_of_run)}.`}
          </p>
        )}
        <Problem error={error} />
      </div>
    </section>
  );
}
