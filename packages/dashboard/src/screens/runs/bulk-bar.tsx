import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { failureOf } from '../../api/problem.ts';
import { useClient, useMay } from '../../api/session.ts';
import { Text } from '../../parts/blocks.tsx';
import { Button, ButtonLink } from '../../parts/controls.tsx';
import { CopyButton } from '../../parts/copy.tsx';
import { countText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { useKeys } from '../../parts/keys.ts';
import { RoleButton } from '../../parts/role-button.tsx';
import { showToast } from '../../parts/toast.tsx';
import styles from './runs.module.css';

const ConfirmDialog = lazy(async () => ({ default: (await import('../../parts/dialog.tsx')).ConfirmDialog }));

/** Maximum number of concurrent requests of one bulk action. */
const mostAtOnce = 5;

/**
 * The bar with the actions on the selected runs. Shows the number of runs to which an action applies, and lists the runs for which the
 * action failed.
 */
export function BulkBar({ runs, clear }: { runs: readonly RunItem[]; clear: () => void }) {
  const client = useClient();
  const may = useMay('member');
  const queries = useQueryClient();
  const [isAsking, setAsking] = useState(false);
  const [failures, setFailures] = useState<readonly string[]>([]);
  const live = runs.filter(({ state }) => !isTerminal(state));
  const ended = runs.filter(({ state }) => isTerminal(state));
  const below = live.reduce((sum, { child_runs: children }) => sum + (children?.live ?? 0), 0);

  /** Calls `act` for each run, with at most `mostAtOnce` concurrent calls. */
  const each = async (some: readonly RunItem[], act: (run: RunItem) => Promise<unknown>, done: string) => {
    const remainingRuns = [...some];
    const failed: string[] = [];
    const work = async () => {
      for (let run = remainingRuns.shift(); run; run = remainingRuns.shift()) {
        try {
          await act(run);
        } catch (error) {
          failed.push(`${run.title}: ${failureOf(error).detail}`);
        }
      }
    };
    await Promise.all(Array.from({ length: mostAtOnce }, work));
    setFailures(failed);
    if (failed.length < some.length) showToast(`${countText(some.length - failed.length, 'run')} ${done}`);
    await queries.invalidateQueries({ queryKey: ['runs'] });
    if (failed.length === 0) clear();
  };
  const cancel = () =>
    each(live, async ({ run_id: runId }) => await client.cancelRun({ params: { runId } }), 'cancelled');
  const headers = { 'x-oz-api-source': 'WEB_APP' } as const;
  const rerun = () =>
    each(
      ended,
      async ({ run_id: runId }) => await client.rerunRun({ params: { runId }, body: {}, headers }),
      'started again',
    );
  useKeys([{ key: 'shift+x', does: 'Cancel the selected runs', run: () => may && live.length > 0 && setAsking(true) }]);
  return (
    <>
      <div className={styles.bulk} role="toolbar" aria-label={`${countText(runs.length, 'run')} selected`}>
        <Text bold>{`${runs.length} selected`}</Text>
        <span className={styles.sep} />
        {ended.length > 0 && (
          <RoleButton needs="member" run={() => void rerun()}>
            <Icon name="again" small />
            {`Rerun ${ended.length} ended`}
          </RoleButton>
        )}
        {live.length > 0 && (
          <RoleButton needs="member" kind="danger" icon="stop" run={() => setAsking(true)}>
            {`Cancel ${live.length} live…`} <kbd>⇧X</kbd>
          </RoleButton>
        )}
        {runs.length > 1 && (
          <ButtonLink to="/compare" search={{ run: runs.map(({ run_id: id }) => id) }}>
            Compare
          </ButtonLink>
        )}
        <CopyButton text={runs.map(({ run_id: id }) => id).join('\n')} what="Copy the ids" label="Copy ids" />
        <Button kind="ghost" onClick={clear}>
          Clear <kbd>Esc</kbd>
        </Button>
        {failures.length > 0 && (
          <Text as="details" tone="bad" small open>
            <summary>{`${failures.length} failed`}</summary>
            <ul>
              {failures.slice(0, 10).map((text) => (
                <li key={text}>{visibleText(text)}</li>
              ))}
            </ul>
          </Text>
        )}
      </div>
      <Suspense>
        {isAsking && (
          <ConfirmDialog
            title={`Cancel ${countText(live.length, 'live run')}?`}
            action={`Cancel ${countText(live.length, 'run')}`}
            safe="Keep them running"
            run={cancel}
            close={() => setAsking(false)}
          >
            {below > 0
              ? `${countText(live.length, 'live run')} and ${countText(below, 'run')} below them end.`
              : 'Their agents are stopped and their sandboxes end.'}
          </ConfirmDialog>
        )}
      </Suspense>
    </>
  );
}
