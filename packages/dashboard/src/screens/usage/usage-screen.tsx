import type { UsageDimension } from '@runyard/contract/team/budgets';
import { usageDimensions } from '@runyard/contract/wire/choices';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useBudget } from '../../api/lists.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { More, Pad, Row, Tabs, Text } from '../../parts/blocks.tsx';
import { ChooseOne } from '../../parts/choose-one.tsx';
import { Button, Input } from '../../parts/controls.tsx';
import { SkeletonRows } from '../../parts/empty.tsx';
import { sizeText } from '../../parts/format.ts';
import { Problem } from '../../parts/problem.tsx';
import { CostChart } from './cost-chart.tsx';
import { csvOf, dayAfter, dayOf, daysBetween, monthOf, readAll } from './report.ts';
import { RunsTable } from './runs-table.tsx';
import { Summary } from './summary.tsx';
import { UsageTable } from './usage-table.tsx';

const route = getRouteApi('/shell/usage');

/**
 * Ways to group the cost, with the most usual ways at the beginning. A person who sees only their own runs cannot choose `creator`, because
 * all these runs have the same creator.
 */
const dimensions: readonly UsageDimension[] = [
  'model',
  ...usageDimensions.filter((each) => !['model', 'day'].includes(each)),
  'day',
];
const ownDimensions = dimensions.filter((each) => each !== 'creator');
const spans = [
  ['month', 'This month'],
  ['30', '30 days'],
  ['custom', 'Custom'],
] as const;
const isDay = (text: string | undefined): text is string => /^\d{4}-\d\d-\d\d$/.test(text ?? '');
const capital = (word: string): string => word.slice(0, 1).toUpperCase() + word.slice(1);

/**
 * Shows the team's spending on models: the remaining budget, the largest shares, and the forecast. Members see only the spending of their
 * own runs.
 */
export function UsageScreen() {
  const { team, person } = useSession();
  const seesTeam = useMay('admin');
  const may = useMay('member');
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const shown = seesTeam ? dimensions : ownDimensions;
  const isByRun = oneOf(search.by) === 'run';
  const by = shown.find((each) => each === oneOf(search.by)) ?? 'model';
  const today = dayOf(Date.now());
  const [firstOfMonth, lastOfMonth] = monthOf(today);
  const [wantedFrom, wantedTo] = [oneOf(search.from), oneOf(search.to)];
  const from = isDay(wantedFrom) ? wantedFrom : firstOfMonth;
  const to = isDay(wantedTo) ? wantedTo : today;
  const monthAgo = dayAfter(today, -29);
  const span =
    wantedTo !== undefined ? 'custom' : from === firstOfMonth ? 'month' : from === monthAgo ? '30' : 'custom';

  const budget = useBudget(seesTeam);
  const table = useReport([by], from, to, may);
  const models = useReport(['day', 'model'], from, to, may);
  const trend = useReport(['day', by], from, to, may && by !== 'day');
  const lastWeek = useReport(['day'], dayAfter(today, -7), dayAfter(today, -1), seesTeam);
  const rows = [...(table.data?.usage ?? [])].sort((a, b) =>
    by === 'day' ? (b.day ?? '').localeCompare(a.day ?? '') : b.cost_usd - a.cost_usd,
  );
  const shownDays = daysBetween(from, [to, today].sort()[0] ?? to);
  const limit = budget.data?.monthly_limit_usd;
  const go = (change: Record<string, string | undefined>) =>
    void navigate({ search: { ...search, ...change }, replace: true });
  const download = () => {
    const url = URL.createObjectURL(new Blob([csvOf(rows, by)], { type: 'text/csv' }));
    const anchor = document.createElement('a');
    anchor.href = url;
    anchor.download = `usage-${team.name.replace(/[^\w-]+/g, '-')}-${by}-${from}-${to}.csv`;
    anchor.click();
    URL.revokeObjectURL(url);
  };
  return (
    <Page
      title="Usage"
      actions={
        may && (
          <>
            <ChooseOne
              options={spans}
              chosen={span}
              choose={(each) =>
                go(each === 'custom' ? { from, to } : { from: each === '30' ? monthAgo : undefined, to: undefined })
              }
            />
            <Button onClick={download} disabled={rows.length === 0 || isByRun}>
              Export CSV
            </Button>
          </>
        )
      }
    >
      {may ? (
        <>
          <Summary
            scope={seesTeam ? 'team' : 'own'}
            budget={budget.data}
            rows={models.data?.usage ?? table.data?.usage}
            lastWeek={lastWeek.data?.usage.reduce((sum, row) => sum + row.cost_usd, 0)}
            today={today}
          />
          {span === 'custom' && (
            <Row as="form" wrap pad aria-label="Days in UTC" onSubmit={(event) => event.preventDefault()}>
              <DayInput label="First day" value={from} max={to} set={(day) => go({ from: day })} />
              <DayInput label="Last day" value={to} max={today} set={(day) => go({ to: day })} />
              <Text tone="dim">days in UTC, at most 366</Text>
            </Row>
          )}
          {[...(seesTeam ? [budget] : []), table, models].map(({ error, refetch }, index) =>
            error ? (
              <Pad key={index}>
                <Problem error={error} onRetry={() => void refetch()} />
              </Pad>
            ) : null,
          )}
          {models.data && (
            <CostChart
              rows={models.data.usage}
              from={from}
              to={span === 'month' ? lastOfMonth : to}
              today={today}
              dailyLimit={span === 'month' && limit ? limit / daysBetween(firstOfMonth, lastOfMonth).length : undefined}
            />
          )}
          <Tabs aria-label="Break down by">
            {[...shown, 'run'].map((each) => (
              <Link
                key={each}
                to="/usage"
                search={{ ...search, by: each === 'model' ? undefined : each }}
                replace
                activeOptions={{ exact: true }}
                aria-current={each === (isByRun ? 'run' : by) ? 'page' : undefined}
              >
                {`By ${each}`}
              </Link>
            ))}
          </Tabs>
          {isByRun ? (
            <RunsTable
              from={from}
              to={to}
              creator={seesTeam ? undefined : person.uid}
              order={oneOf(search.sort) === 'time' ? 'time' : 'cost'}
              setOrder={(order) => go({ sort: order === 'cost' ? undefined : order })}
            />
          ) : table.isPending ? (
            <SkeletonRows count={4} />
          ) : rows.length === 0 ? (
            <Pad as="p" tone="muted">
              {seesTeam ? 'No model was asked in these days.' : 'None of your runs asked a model in these days.'}
            </Pad>
          ) : (
            <UsageTable rows={rows} by={by} what={capital(by)} daily={trend.data?.usage} days={shownDays} />
          )}
          {table.data?.storage && (
            <More>
              {`The team stores ${sizeText(table.data.storage.bytes)} of ${sizeText(table.data.storage.max_bytes)} of conversations, files and workspaces.`}
            </More>
          )}
        </>
      ) : (
        <Pad
          as="p"
          tone="muted"
        >{`Members see the use of their runs, and administrators that of the team. You are ${team.role}: each run shows its own cost.`}</Pad>
      )}
    </Page>
  );
}

/** Reads the sums from the day `from` to the day `to`. Returns no data if the report has more rows than the screen reads. */
function useReport(groups: readonly UsageDimension[], from: string, to: string, isEnabled: boolean) {
  const client = useClient();
  const { team } = useSession();
  const names = [...new Set(groups)];
  return useQuery({
    queryKey: ['usage', team.uid, from, to, ...names],
    queryFn: async ({ signal }) => {
      const report = await readAll(
        async (cursor) =>
          await client.getUsage({
            query: { from, to, group_by: names, limit: 500, ...(cursor === undefined ? {} : { cursor }) },
            signal,
          }),
      );
      return report ?? null;
    },
    enabled: isEnabled,
    staleTime: 30_000,
    // Show the old rows until the new rows have arrived, but only if both have the same grouping, because rows of another grouping have
    // other names.
    placeholderData: (before, query) => (query?.queryKey.slice(4).join() === names.join() ? before : undefined),
  });
}

function DayInput({
  label,
  value,
  max,
  set,
}: {
  label: string;
  value: string;
  max: string;
  set: (day: string) => void;
}) {
  return (
    <Row as="label">
      <Text medium cut>
        {label}
      </Text>
      <Input type="date" value={value} max={max} onChange={({ target }) => target.value !== '' && set(target.value)} />
    </Row>
  );
}
