import type { UsageReport, UsageRow } from '@runyard/contract/team/budgets';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { SkeletonRows } from '../../parts/empty.tsx';
import { countText, dollarText, numberText } from '../../parts/format.ts';
import { Problem } from '../../parts/problem.tsx';
import { visibleText } from '../../parts/untrusted.ts';

const route = getRouteApi('/shell/usage');

/** Groups of the table, with the words of their tabs. */
const groups = { model: 'Models', agent: 'Who runs act as', creator: 'Who starts runs' } as const;
type Group = keyof typeof groups;

const dayMs = 86_400_000;
const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

/** Shows what the team spends on models: how much is left, who or what spends it, and whether it lasts. */
export function UsageScreen() {
  const client = useClient();
  const { team } = useSession();
  const may = useMay('admin');
  const search = route.useSearch();
  const by: Group = (Object.keys(groups) as Group[]).find((each) => each === oneOf(search.by)) ?? 'model';
  const from = oneOf(search.from) ?? dayOf(Date.now() - 29 * dayMs);
  const to = oneOf(search.to) ?? dayOf(Date.now());
  const budget = useQuery({
    queryKey: ['budget', team.uid],
    queryFn: async () => await client.getTeamBudget({}),
  });
  const days = useQuery({
    queryKey: ['usage', team.uid, from, to, 'day'],
    queryFn: async () => await client.getUsage({ query: { from, to, group_by: ['day'], limit: 500 } }),
    enabled: may,
  });
  const table = useQuery({
    queryKey: ['usage', team.uid, from, to, by],
    queryFn: async () => await client.getUsage({ query: { from, to, group_by: [by], limit: 500 } }),
    enabled: may,
  });
  const rows = [...(table.data?.usage ?? [])].sort((a, b) => b.cost_usd - a.cost_usd);
  const spent = budget.data?.spent_usd;
  const limit = budget.data?.monthly_limit_usd;
  const now = new Date();
  const dayOfMonth = now.getUTCDate();
  const daysOfMonth = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 0)).getUTCDate();
  const pace = spent === undefined ? undefined : (spent / dayOfMonth) * daysOfMonth;
  return (
    <Page title="Usage">
      <div className="sum4">
        <div>
          <span className="dim small">{`spent in ${budget.data?.month ?? 'this month'}`}</span>
          <span className="big">{spent === undefined ? '…' : dollarText(spent)}</span>
          {limit !== undefined && spent !== undefined && limit > 0 && (
            <svg
              className="meter"
              viewBox="0 0 100 6"
              preserveAspectRatio="none"
              role="img"
              aria-label={`${Math.round((spent / limit) * 100)} percent of the limit`}
            >
              <rect
                width={Math.min(100, (spent / limit) * 100)}
                height="6"
                className={spent > limit ? 'f-bad' : 'f-ink2'}
              />
            </svg>
          )}
        </div>
        <div>
          <span className="dim small">limit of the month</span>
          <span className="big">{limit === undefined ? 'none' : dollarText(limit)}</span>
          <Link className="link small" to="/settings/$tab" params={{ tab: 'budget' }}>
            Change
          </Link>
        </div>
        <div>
          <span className="dim small">left</span>
          <span className="big">
            {limit === undefined || spent === undefined ? '–' : dollarText(Math.max(0, limit - spent))}
          </span>
        </div>
        <div>
          <span className="dim small">at this pace, at the end of the month</span>
          <span className={`big ${limit !== undefined && pace !== undefined && pace > limit ? 'badc' : ''}`}>
            {pace === undefined ? '…' : dollarText(pace)}
          </span>
          <span className="hint">an estimate</span>
        </div>
      </div>
      <div className="wide">
        <Problem error={budget.error ?? days.error ?? table.error} />
        {may ? (
          <>
            <p className="mut small">
              {`${from} to ${to}, days in UTC. `}
              {[7, 30, 90].map((count) => (
                <Link
                  key={count}
                  className="link"
                  to="/usage"
                  search={{ ...search, from: dayOf(Date.now() - (count - 1) * dayMs), to: undefined }}
                >
                  {`${count} days `}
                </Link>
              ))}
            </p>
            {days.data && <Days report={days.data} />}
            <nav className="tabs" aria-label="Groups">
              {(Object.keys(groups) as Group[]).map((each) => (
                <Link
                  key={each}
                  to="/usage"
                  search={{ ...search, by: each === 'model' ? undefined : each }}
                  {...(each === by ? { 'aria-current': 'page' as const } : {})}
                >
                  {groups[each]}
                </Link>
              ))}
            </nav>
            {table.isPending ? (
              <SkeletonRows count={4} />
            ) : rows.length === 0 ? (
              <p className="dim">No model was asked in these days.</p>
            ) : (
              <table className="tbl">
                <thead>
                  <tr>
                    <th>{groups[by]}</th>
                    <th className="num w108">Requests</th>
                    <th className="num w120">Tokens read</th>
                    <th className="num w120">From cache</th>
                    <th className="num w120">Written</th>
                    <th className="num w108">Cost</th>
                  </tr>
                </thead>
                <tbody>
                  {rows.map((row, index) => (
                    <tr key={index}>
                      <td className={by === 'model' ? 'mono' : ''}>{visibleText(nameOf(row, by))}</td>
                      <td className="num">{numberText(row.requests)}</td>
                      <td className="num">{numberText(row.input_tokens)}</td>
                      <td className="num">{numberText(row.cache_read_tokens)}</td>
                      <td className="num">{numberText(row.output_tokens)}</td>
                      <td className="num">
                        {dollarText(row.cost_usd)}
                        {row.unpriced_requests > 0 && (
                          <span
                            className="waitc"
                            title={`${countText(row.unpriced_requests, 'request')} without a known price`}
                          >
                            {' +'}
                          </span>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </>
        ) : (
          <p className="mut">An administrator of the team sees who and what spends it.</p>
        )}
      </div>
    </Page>
  );
}

function nameOf(row: UsageRow, by: Group): string {
  if (by === 'model') return row.model_id ?? 'not known';
  const profile = by === 'agent' ? row.agent : row.creator;
  return profile?.display_name ?? profile?.uid ?? 'not known';
}

/** Draws the cost of each day; a table has the same for those who do not see it. */
function Days({ report }: { report: UsageReport }) {
  const days = [...report.usage].sort((a, b) => (a.day ?? '').localeCompare(b.day ?? ''));
  const byDay = new Map(days.map((row) => [row.day, row.cost_usd]));
  const all: string[] = [];
  for (let time = Date.parse(report.from); time <= Date.parse(report.to); time += dayMs) all.push(dayOf(time));
  const most = Math.max(0.01, ...byDay.values());
  const width = 900 / Math.max(1, all.length);
  return (
    <div className="chart-box">
      <svg className="chart" viewBox="0 0 960 180" aria-hidden="true">
        <path className="k-line" d="M50 10.5h900M50 80.5h900M50 150.5h900" />
        <text x="44" y="14" textAnchor="end" className="f-ink3">
          {dollarText(most)}
        </text>
        <text x="44" y="154" textAnchor="end" className="f-ink3">
          $0
        </text>
        {all.map((day, index) => {
          const tall = ((byDay.get(day) ?? 0) / most) * 140;
          return (
            <g key={day}>
              <rect
                x={50 + index * width + 1}
                y={150 - tall}
                width={Math.max(1, width - 2)}
                height={tall}
                className="f-c2"
              >
                <title>{`${day}: ${dollarText(byDay.get(day) ?? 0)}`}</title>
              </rect>
              {index % Math.ceil(all.length / 6) === 0 && (
                <text x={50 + index * width} y="170" className="f-ink3">
                  {day.slice(5)}
                </text>
              )}
            </g>
          );
        })}
      </svg>
      <table className="sr">
        <caption>Cost of each day in US dollars</caption>
        <tbody>
          {days.map(({ day, cost_usd: cost }) => (
            <tr key={day}>
              <th>{day}</th>
              <td>{dollarText(cost)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
