import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { useClient, useSession } from '../../api/session.ts';
import { More, Pad, Row, TextLink } from '../../parts/blocks.tsx';
import { ChooseOne } from '../../parts/choose-one.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { SkeletonRows } from '../../parts/empty.tsx';
import { countText, numberText } from '../../parts/format.ts';
import { StateBadge } from '../../parts/icon.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Ago, Lasting } from '../../parts/time.tsx';
import { CostOfRun } from '../runs/columns.tsx';
import { dayAfter } from './report.ts';

/** Maximum number of runs that are read to sort them. The service has no list of runs by cost or time. */
const mostRuns = 2_000;
/** Number of runs that are shown. */
const mostShown = 100;
const pageSize = 500;

export type RunOrder = 'cost' | 'time';

/** A run whose cost is not known is after the runs whose cost is known. */
const costOf = ({ request_usage: usage }: RunItem): number => usage?.inference_cost_usd ?? (usage ? 0 : -1);
const endOf = (run: RunItem) => run.finished_at ?? (isTerminal(run.state) ? run.updated_at : undefined);
const timeOf = (run: RunItem, nowMs: number): number =>
  run.started_at ? Date.parse(endOf(run) ?? new Date(nowMs).toISOString()) - Date.parse(run.started_at) : 0;

/** Shows the most expensive or the longest runs that were created from the day `from` to the day `to`. */
export function RunsTable({
  from,
  to,
  creator,
  order,
  setOrder,
}: {
  from: string;
  to: string;
  /** UID of the person whose runs are shown; undefined: all runs of the team. */
  creator: string | undefined;
  order: RunOrder;
  setOrder: (order: RunOrder) => void;
}) {
  const { data, error, refetch, dataUpdatedAt } = useRunsOfDays(from, to, creator);
  if (error)
    return (
      <Pad>
        <Problem error={error} onRetry={() => void refetch()} />
      </Pad>
    );
  if (data === undefined) return <SkeletonRows count={4} />;
  if (data.runs === undefined)
    return (
      <Pad as="p" tone="muted">
        {`${data.isExact ? numberText(data.total) : `More than ${numberText(data.total)}`} runs were created in these days. The page sorts at most ${numberText(mostRuns)}: choose fewer days.`}
      </Pad>
    );
  if (data.runs.length === 0)
    return (
      <Pad as="p" tone="muted">
        No run was created in these days.
      </Pad>
    );
  const measure = order === 'cost' ? costOf : (run: RunItem) => timeOf(run, dataUpdatedAt);
  const sorted = [...data.runs].sort((a, b) => measure(b) - measure(a));
  return (
    <>
      <Row pad>
        <ChooseOne
          options={[
            ['cost', 'Most expensive'],
            ['time', 'Longest'],
          ]}
          chosen={order}
          choose={setOrder}
        />
      </Row>
      <DataTable
        bare
        stacked
        aria-label={order === 'cost' ? 'Most expensive runs' : 'Longest runs'}
        items={sorted.slice(0, mostShown)}
        keyOf={({ run_id }) => run_id}
        columns={(column) => [
          column('Run', { cut: true }, ({ run_id: runId, title }) => (
            <TextLink to="/runs/$runId" params={{ runId }}>
              {visibleText(title)}
            </TextLink>
          )),
          column('State', { width: 140, onlyWide: true }, ({ state }) => <StateBadge state={state} />),
          column('Created', { width: 110, onlyWide: true }, ({ created_at }) => <Ago time={created_at} />),
          column(
            'Time',
            { width: 110, number: true, isSorted: order === 'time' },
            (run) => run.started_at && <Lasting from={run.started_at} to={endOf(run)} />,
          ),
          column('Cost', { width: 110, number: true, isSorted: order === 'cost' }, (run) => <CostOfRun run={run} />),
        ]}
      />
      <More>
        {`${sorted.length > mostShown ? `${mostShown} of ` : ''}${countText(sorted.length, 'run')} created in these days, each with all of its cost, also of other days, without its child runs.`}
      </More>
    </>
  );
}

/** Reads the runs of these days. `runs` is undefined if there are more runs than the page sorts. */
function useRunsOfDays(from: string, to: string, creator: string | undefined) {
  const client = useClient();
  const { team } = useSession();
  return useQuery({
    queryKey: ['runs of days', team.uid, from, to, creator],
    queryFn: async ({ signal }) => {
      const filters = {
        created_after: `${dayAfter(from, -1)}T23:59:59.999Z`,
        created_before: `${dayAfter(to, 1)}T00:00:00Z`,
        ...(creator === undefined ? {} : { creator: [creator] }),
      };
      const { total, is_exact: isExact } = await client.countRuns({ query: filters });
      const runs: RunItem[] = [];
      let cursor: string | undefined;
      do {
        if (total > mostRuns || runs.length > mostRuns) return { total: Math.max(total, runs.length), isExact };
        const more = cursor === undefined ? {} : { cursor };
        const page = await client.listRuns({
          query: { ...filters, view: 'summary', sort_by: 'created_at', limit: pageSize, ...more },
          signal,
        });
        runs.push(...page.runs);
        cursor = page.page_info.has_next_page ? page.page_info.next_cursor : undefined;
      } while (cursor !== undefined);
      return { total, isExact, runs };
    },
    staleTime: 30_000,
  });
}
