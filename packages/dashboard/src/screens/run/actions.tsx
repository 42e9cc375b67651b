/** The dialogs of the actions on a run: rerun, cancel, delete. This file is loaded when the first dialog opens. */

import type { RunItem } from '@runyard/contract/runs/runs';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { statusOf } from '../../api/problem.ts';
import { useClient } from '../../api/session.ts';
import { P } from '../../parts/blocks.tsx';
import { Button, ButtonLink, FieldGroup, Input } from '../../parts/controls.tsx';
import { ConfirmDialog, Dialog } from '../../parts/dialog.tsx';
import { countText } from '../../parts/format.ts';
import { Problem } from '../../parts/problem.tsx';
import { FreshCheck } from '../new-run/fields.tsx';
import { type Draft, draftOfRun, rerunOf } from '../new-run/request.ts';

/** With `rerun fresh`, the new run sets its environment up from the beginning. */
export type RunAction = 'rerun' | 'rerun fresh' | 'cancel' | 'delete';

/** How long the page repeats a cancel, in milliseconds: a PENDING run cannot be cancelled until a worker has claimed it. */
const cancelPatienceMs = 30_000;

/** Shows the dialog of an action. `liveBelow`: the number of live runs that this run started. */
export function ActionDialog({
  action,
  run,
  liveBelow,
  close,
  refresh,
}: {
  action: RunAction;
  run: RunItem;
  liveBelow: number;
  close: () => void;
  refresh: () => Promise<void>;
}) {
  const client = useClient();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const params = { runId: run.run_id };
  if (action === 'rerun' || action === 'rerun fresh')
    return <RerunDialog run={run} isFreshAtFirst={action === 'rerun fresh'} close={close} />;
  if (action === 'cancel') {
    const cancel = async () => {
      const until = performance.now() + cancelPatienceMs;
      for (;;) {
        try {
          await client.cancelRun({ params });
          return await refresh();
        } catch (error) {
          if (statusOf(error) !== 409 || performance.now() > until) throw error;
          await new Promise((resolve) => setTimeout(resolve, 1000));
        }
      }
    };
    return (
      <ConfirmDialog title="Cancel this run?" action="Cancel the run" safe="Keep it running" run={cancel} close={close}>
        {liveBelow > 0
          ? `This run and ${countText(liveBelow, 'live run')} below it end. Their sandboxes are closed.`
          : 'Its agent is stopped and its sandbox ends.'}
      </ConfirmDialog>
    );
  }
  const remove = async () => {
    await client.deleteRun({ params });
    queries.removeQueries({ queryKey: ['run'] });
    await navigate({ to: '/runs' });
  };
  return (
    <ConfirmDialog title="Delete this run?" action="Delete the run" run={remove} close={close}>
      Its conversation, transcript, attachments and artifacts are deleted, and their addresses stop working. Runs that
      it started stay.
    </ConfirmDialog>
  );
}

function RerunDialog({ run, isFreshAtFirst, close }: { run: RunItem; isFreshAtFirst: boolean; close: () => void }) {
  const client = useClient();
  const navigate = useNavigate();
  const original = draftOfRun(run);
  const hasEnvironment = original.environment !== '';
  const [draft, setDraft] = useState({ ...original, isFresh: original.isFresh || (isFreshAtFirst && hasEnvironment) });
  // The idempotency key of the request. It stays the same until an answer has arrived or the request changes, so that a repeated request
  // starts only one run.
  const key = useRef<string | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const change = (changes: Partial<Draft>) => {
    key.current = undefined;
    setDraft({ ...draft, ...changes });
  };
  const start = async () => {
    setBusy(true);
    setError(undefined);
    key.current ??= crypto.randomUUID();
    try {
      const created = await client.rerunRun({
        params: { runId: run.run_id },
        body: rerunOf(draft, run),
        headers: { 'idempotency-key': key.current, 'x-oz-api-source': 'WEB_APP' },
      });
      close();
      await navigate({ to: '/runs/$runId', params: { runId: created.run_id } });
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title="Run again"
      close={close}
      footer={
        <>
          <Button onClick={close}>Back</Button>
          <ButtonLink
            to="/runs/new"
            search={{
              rerun: run.run_id,
              prompt: draft.prompt === original.prompt ? undefined : draft.prompt,
              fresh: draft.isFresh === original.isFresh ? undefined : String(draft.isFresh),
            }}
            onClick={close}
          >
            Change more…
          </ButtonLink>
          <Button
            kind="primary"
            disabled={isBusy || (draft.prompt.trim() === '' && original.prompt !== '')}
            onClick={() => void start()}
          >
            {draft.prompt === original.prompt ? 'Run again' : 'Run with this prompt'}
          </Button>
        </>
      }
    >
      <P tone="muted">A new run of its own conversation, with the same configuration, attachments and metadata.</P>
      <FieldGroup>
        <label htmlFor="rerun-prompt">Prompt</label>
        <Input
          id="rerun-prompt"
          as="textarea"
          rows={8}
          value={draft.prompt}
          onChange={({ target }) => change({ prompt: target.value })}
        />
      </FieldGroup>
      {hasEnvironment && <FreshCheck isOn={draft.isFresh} set={(isFresh) => change({ isFresh })} />}
      <Problem error={error} />
    </Dialog>
  );
}
