import type { TeamBudget, UsageReport, UsageRow } from '@runyard/contract/team/budgets';
import { visibleText } from '@runyard/contract/wire/visible';
import { Link } from '@tanstack/react-router';
import { aboutOf, dollarText, numberText } from '../../parts/format.ts';
import { Meter } from '../../parts/meter.tsx';
import { cacheShare, daysBetween, dayText, monthOf, monthText, tokensRead, tokensText } from './report.ts';

/**
 * Shows the remaining budget of the month, and notes about the cost of the days on the screen. If `scope` is `own`, the rows contain
 * only the person's own runs, and the budget of the team is not shown.
 */
export function Summary({
  scope,
  budget,
  rows,
  lastWeek,
  today,
}: {
  scope: UsageReport['scope'];
  budget: TeamBudget | undefined;
  /** Sums for the days on the screen, with one row for each day and model. */
  rows: readonly UsageRow[] | undefined;
  /** Cost of the seven days before today, in US dollars. */
  lastWeek: number | undefined;
  today: string;
}) {
  const share = rows && cacheShare(rows);
  const unpriced = (rows ?? []).filter((row) => row.unpriced_requests > 0);
  const unpricedModels = [...new Set(unpriced.map((row) => row.model_id ?? 'a model that is not known'))];
  return (
    <div className="sum4">
      {scope === 'team' ? (
        <TeamMonth budget={budget} lastWeek={lastWeek} today={today} />
      ) : (
        <div>
          <span className="mut">Cost of your runs</span>
          <span className="big">
            {rows === undefined ? '…' : dollarText(rows.reduce((sum, row) => sum + row.cost_usd, 0))}
          </span>
          <span className="small dim">Administrators see the use of the whole team.</span>
        </div>
      )}
      <div>
        <span className="mut">Read from cache</span>
        <span className="big">{rows === undefined ? '…' : share === undefined ? '–' : `${share}%`}</span>
        {rows !== undefined && (
          <span className="small dim">
            {`of ${tokensText(rows.reduce((sum, row) => sum + tokensRead(row), 0))} tokens read`}
          </span>
        )}
      </div>
      <div>
        <span className="mut">Cost not known</span>
        <span className={`big ${unpriced.length > 0 ? 'waitc' : ''}`}>
          {rows === undefined ? '…' : numberText(unpriced.reduce((sum, row) => sum + row.unpriced_requests, 0))}
        </span>
        <span className="small dim">
          {unpriced.length === 0
            ? 'requests: all have a price'
            : `requests to ${visibleText(unpricedModels.slice(0, 3).join(', '))}${unpricedModels.length > 3 ? ' and others' : ''}: they count for no limit.`}
        </span>
      </div>
    </div>
  );
}

/** Shows the team's spending this month, and the amount that remains until the monthly limit. */
function TeamMonth({
  budget,
  lastWeek,
  today,
}: {
  budget: TeamBudget | undefined;
  lastWeek: number | undefined;
  today: string;
}) {
  const spent = budget?.spent_usd;
  const limit = budget?.monthly_limit_usd;
  const last = monthOf(today)[1];
  const estimate =
    spent === undefined || lastWeek === undefined
      ? undefined
      : spent + (lastWeek / 7) * (daysBetween(today, last).length - 1);
  return (
    <>
      <div>
        <span className="mut">
          {`Spent in ${monthText(budget?.month ?? today)} `}
          <span className="dim">UTC</span>
        </span>
        <span className="big">
          {spent === undefined ? '…' : dollarText(spent)}
          {limit !== undefined && <span className="dim md">{` of ${dollarText(limit)}`}</span>}
        </span>
        {spent !== undefined && limit !== undefined && (
          <Meter
            value={spent}
            of={limit}
            label="of the monthly limit"
            {...(estimate === undefined ? {} : { mark: estimate })}
          />
        )}
        {estimate !== undefined && (
          <span className={`small ${limit !== undefined && estimate > limit ? 'badc' : 'dim'}`}>
            {`At the pace of the last 7 days: about ${dollarText(aboutOf(estimate))} by ${dayText(last)}${limit === undefined ? '' : estimate > limit ? ', above the limit' : ', below the limit'}.`}
          </span>
        )}
      </div>
      <div>
        <span className="mut">Left</span>
        <span className={`big ${limit !== undefined && spent !== undefined && spent >= limit ? 'badc' : ''}`}>
          {spent === undefined ? '…' : limit === undefined ? 'no limit' : dollarText(Math.max(0, limit - spent))}
        </span>
        <span className="small dim">
          {limit === undefined ? '' : 'At the limit, new runs get budget_exceeded. '}
          <Link className="link" to="/settings/$tab" params={{ tab: 'budget' }} search={{}}>
            {limit === undefined ? 'Set one' : 'Change it'}
          </Link>
        </span>
        {budget?.credits !== undefined && <span className="small dim">{`${numberText(budget.credits)} credits`}</span>}
      </div>
    </>
  );
}
