import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { PlainFailure } from '../../api/problem.ts';
import { useRead } from '../../api/read.ts';
import { useClient } from '../../api/session.ts';
import { slowMs } from '../../api/slow-reads.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Hint, Text } from '../../parts/blocks.tsx';
import { countText, dollarText } from '../../parts/format.ts';
import { Icon, StateBadge } from '../../parts/icon.tsx';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Lasting } from '../../parts/time.tsx';
import styles from './run.module.css';

/** Maximum number of child runs that the page lists for one run. */
const most = 100;

/** Returns the runs that this run started, the oldest first. Reads them again while this run is live. */
export function useChildRuns(run: RunItem): readonly RunItem[] {
  const { data } = useRead(
    ['children', run.run_id],
    async (client) =>
      (
        await client.listRuns({
          query: { ancestor_run_id: run.run_id, sort_by: 'created_at', sort_order: 'asc', limit: most },
        })
      ).runs,
    {
      refetchInterval: ({ state }) =>
        !isTerminal(run.state) || state.data?.some((child) => !isTerminal(child.state)) ? 5_000 : slowMs,
    },
  );
  return data ?? [];
}

/** Returns the cost of all these runs. A run whose cost is not known does not count as free. */
export function costOf(runs: readonly Pick<RunItem, 'request_usage'>[]): string {
  const usd = runs.reduce((sum, { request_usage: usage }) => sum + (usage?.inference_cost_usd ?? 0), 0);
  const unknown = runs.filter(({ request_usage: usage }) => usage && usage.inference_cost_usd === undefined).length;
  if (unknown === 0) return dollarText(usd);
  return unknown === runs.length
    ? 'cost not known'
    : `${dollarText(usd)}, without ${countText(unknown, 'run')} of unknown cost`;
}

/** Lists the runs that a run started, with a button that repeats those that have failed. */
export function ChildRuns({ runs, parentId }: { runs: readonly RunItem[]; parentId: string }) {
  const client = useClient();
  const queries = useQueryClient();
  const { error, isBusy, attempt } = useAttempts();
  if (runs.length === 0) return null;
  const repeated = new Set(runs.flatMap(({ rerun_of, retry_of }) => [rerun_of, retry_of]));
  const failed = runs.filter(({ state, run_id: id }) => (state === 'FAILED' || state === 'ERROR') && !repeated.has(id));
  const rerun = () =>
    attempt(async () => {
      const { refused } = await client.rerunFailedRuns({ params: { runId: parentId } });
      await queries.invalidateQueries({ queryKey: ['children', parentId] });
      if (refused.length > 0)
        throw new PlainFailure(`${countText(refused.length, 'run')} not repeated. ${refused[0]?.reason ?? ''}`);
    });
  return (
    <div className={`${styles.act} ${styles.kids}`}>
      <div className={styles.actHead}>
        <Icon name="child" small />
        <Text medium>{runs.length < most ? countText(runs.length, 'child run') : `The first ${most} child runs`}</Text>
        <Text tone="dim">{costOf(runs)}</Text>
        {failed.length > 0 && (
          <RoleButton needs="member" icon="again" disabled={isBusy} run={() => void rerun()}>
            Rerun failed
          </RoleButton>
        )}
      </div>
      <Problem error={error} />
      {runs.map((run) => (
        <Link key={run.run_id} to="/runs/$runId" params={{ runId: run.run_id }}>
          <StateBadge state={run.state} />
          <Text cut>{visibleText(run.title)}</Text>
          <Hint cut>{visibleText(run.status_message?.message ?? '')}</Hint>
          <Hint>
            <Lasting from={run.started_at ?? undefined} to={run.finished_at} />
          </Hint>
        </Link>
      ))}
    </div>
  );
}
