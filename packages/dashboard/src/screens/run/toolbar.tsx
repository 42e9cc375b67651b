import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import { useNavigate } from '@tanstack/react-router';
import { useClient, useMay, useSession } from '../../api/session.ts';
import type { Attempts } from '../../parts/attempt.ts';
import { copyText } from '../../parts/copy.tsx';
import { useKeys } from '../../parts/keys.ts';
import { MoreMenu } from '../../parts/more-menu.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import type { RunAction } from './actions.tsx';

/** Shows the actions of a run. `open` opens the dialog of an action. */
export function Toolbar({
  run,
  attempt,
  refresh,
  open,
}: {
  run: RunItem;
  attempt: Attempts['attempt'];
  refresh: () => Promise<void>;
  open: (action: RunAction) => void;
}) {
  const client = useClient();
  const navigate = useNavigate();
  const { team } = useSession();
  const may = useMay('member');
  const needsRole = may ? undefined : 'needs the role member';
  const hasEnded = isTerminal(run.state);
  const canCancel = may && !hasEnded && run.is_run_type_cancellable !== false;
  useKeys([
    { key: 'r', does: 'Rerun', run: () => may && open('rerun') },
    { key: 'shift+r', does: 'Rerun with a fresh environment', run: () => may && open('rerun fresh') },
    { key: 'shift+x', does: 'Cancel the run', run: () => canCancel && open('cancel') },
    { key: 'y', does: 'Copy the run id', run: () => void copyText(run.run_id, 'Copied the run id') },
  ]);
  const interrupt = async () => {
    await attempt(() => client.interruptRun({ params: { runId: run.run_id } }));
    await refresh();
  };
  /**
   * Asks the service for a signed address and opens it. A plain link is not possible, because a link cannot send the header that names the
   * team.
   */
  const openTranscript = () =>
    attempt(async () => {
      const response = await fetch(`/api/v1/agent/runs/${run.run_id}/transcript`, {
        headers: { 'x-team-uid': team.uid },
      });
      await response.body?.cancel();
      if (!response.ok) throw new Error(`the transcript cannot be read (HTTP ${response.status})`);
      location.assign(response.url);
    });
  return (
    <>
      {run.state === 'INPROGRESS' && (
        <RoleButton needs="member" icon="pause" notNarrow run={() => void interrupt()}>
          Interrupt turn
        </RoleButton>
      )}
      <RoleButton needs="member" icon="again" notNarrow run={() => open('rerun')}>
        Rerun…
      </RoleButton>
      {!hasEnded && (
        <RoleButton needs="member" kind="danger" icon="stop" notNarrow disabled={!canCancel} run={() => open('cancel')}>
          Cancel run…
        </RoleButton>
      )}
      <MoreMenu
        path={`/agent/runs/${run.run_id}`}
        entries={[
          { label: 'Raw transcript', run: () => void openTranscript() },
          // On narrow pages, which have no space for buttons, these actions are in the menu.
          ...(run.state === 'INPROGRESS'
            ? [{ label: 'Interrupt turn', run: () => void interrupt(), disabled: needsRole }]
            : []),
          { label: 'Rerun…', run: () => open('rerun'), disabled: needsRole },
          ...(run.agent_config?.environment_id === undefined
            ? []
            : [{ label: 'Rerun fresh…', run: () => open('rerun fresh'), disabled: needsRole }]),
          {
            label: 'Compare…',
            run: () =>
              void navigate({ to: '/compare', search: { run: [...(run.rerun_of ? [run.rerun_of] : []), run.run_id] } }),
          },
          {
            label: 'Cancel run…',
            run: () => open('cancel'),
            isDangerous: true,
            disabled: needsRole ?? (hasEnded ? 'has ended' : canCancel ? undefined : 'cannot be cancelled'),
          },
          {
            label: 'Delete…',
            run: () => open('delete'),
            isDangerous: true,
            disabled: needsRole ?? (hasEnded ? undefined : 'after its end'),
          },
        ]}
      />
    </>
  );
}
