import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useClient } from '../../api/session.ts';
import { slowMs } from '../../api/slow-reads.ts';
import { countText, dollarText } from '../../parts/format.ts';
import { Icon, StateBadge } from '../../parts/icon.tsx';
import { Lasting } from '../../parts/time.tsx';

/** Maximum number of child runs that the page lists for one run. */
const most = 100;

/** Returns the runs that this run started, the oldest first. Reads them again while this run is live. */
export function useChildRuns(run: RunItem): readonly RunItem[] {
  const client = useClient();
  const { data } = useQuery({
    queryKey: ['children', run.run_id],
    queryFn: async () =>
      (
        await client.listRuns({
          query: { ancestor_run_id: run.run_id, sort_by: 'created_at', sort_order: 'asc', limit: most },
        })
      ).runs,
    refetchInterval: ({ state }) =>
      !isTerminal(run.state) || state.data?.some((child) => !isTerminal(child.state)) ? 5_000 : slowMs,
  });
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

/** Lists the runs that a run started. */
export function ChildRuns({ runs }: { runs: readonly RunItem[] }) {
  if (runs.length === 0) return null;
  return (
    <div className="act kids">
      <div className="sum row">
        <Icon name="child" small />
        <span className="md">
          {runs.length < most ? countText(runs.length, 'child run') : `The first ${most} child runs`}
        </span>
        <span className="dim">{costOf(runs)}</span>
      </div>
      {runs.map((run) => (
        <Link key={run.run_id} to="/runs/$runId" params={{ runId: run.run_id }}>
          <StateBadge state={run.state} />
          <span className="cut">{visibleText(run.title)}</span>
          <span className="dim small cut">{visibleText(run.status_message?.message ?? '')}</span>
          <span className="dim small">
            <Lasting from={run.started_at ?? undefined} to={run.finished_at} />
          </span>
        </Link>
      ))}
    </div>
  );
}
