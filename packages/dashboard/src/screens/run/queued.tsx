import { waitingMessageLength } from '@runyard/contract/limits';
import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem, WaitingFollowup } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import { lazy, Suspense, useState } from 'react';
import { useMembers } from '../../api/lists.ts';
import { useMay, useSession } from '../../api/session.ts';
import { Badge, Chip, Hint, Quote, Row } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { Markdown } from '../../parts/markdown/markdown.tsx';
import talk from './talk.module.css';
import { Turn } from './turn.tsx';

const QueuedDialog = lazy(async () => ({ default: (await import('./queued-dialog.tsx')).QueuedDialog }));

/** Shows the messages that the agent has not read yet, at the end of the conversation. */
export function QueuedMessages({ run, refresh }: { run: RunItem; refresh: () => Promise<void> }) {
  const [open, setOpen] = useState<{ action: 'edit' | 'withdraw'; message: WaitingFollowup } | undefined>();
  return (
    <>
      {run.waiting_followups?.map((message) => (
        <Queued
          key={message.followup_id}
          message={message}
          hasEnded={isTerminal(run.state)}
          act={(action) => setOpen({ action, message })}
        />
      ))}
      <Suspense>
        {open && <QueuedDialog {...open} runId={run.run_id} refresh={refresh} close={() => setOpen(undefined)} />}
      </Suspense>
    </>
  );
}

function Queued({
  message,
  hasEnded,
  act,
}: {
  message: WaitingFollowup;
  hasEnded: boolean;
  act: (action: 'edit' | 'withdraw') => void;
}) {
  const { message: text, mode, attachments, created_by: by, created_at: at } = message;
  const members = useMembers().data;
  const { person } = useSession();
  const isMine = useMay('member') && by === person.uid;
  const administers = useMay('admin');
  // The service shows only the beginning of a long message.
  const isWhole = [...text].length < waitingMessageLength;
  return (
    <Turn at={at}>
      <Quote as="section" tone="muted" aria-label="Queued message">
        <Row as="p" wrap className={talk.who} data-part="author">
          <span>{visibleText(members?.find(({ user }) => user.uid === by)?.user.display_name ?? by)}</span>
          <Badge>Queued</Badge>
          {mode !== undefined && <Badge>{mode}</Badge>}
          {attachments.map((name, index) => (
            <Chip key={index}>{visibleText(name)}</Chip>
          ))}
        </Row>
        <Markdown text={text} />
        {hasEnded && <Hint as="p">The run has ended. The agent gets this with the next message.</Hint>}
        <Row>
          {isMine && isWhole && (
            <Button small onClick={() => act('edit')}>
              Edit…
            </Button>
          )}
          {(isMine || administers) && (
            <Button small onClick={() => act('withdraw')}>
              Withdraw…
            </Button>
          )}
        </Row>
      </Quote>
    </Turn>
  );
}
