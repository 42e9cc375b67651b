import type { TeamBudget, UsageReport, UsageRow } from '@runyard/contract/team/budgets';
import { visibleText } from '@runyard/contract/wire/visible';
import { Hint, Text, TextLink } from '../../parts/blocks.tsx';
import { aboutOf, dollarText, numberText } from '../../parts/format.ts';
import { Meter } from '../../parts/meter.tsx';
import { cacheShare, daysBetween, dayText, monthOf, monthText, tokensRead, tokensText } from './report.ts';
import styles from './usage.module.css';

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
    <div className={styles.summary}>
      {scope === 'team' ? (
        <TeamMonth budget={budget} lastWeek={lastWeek} today={today} />
      ) : (
        <div>
          <Text tone="muted">Cost of your runs</Text>
          <Text big>{rows === undefined ? '…' : dollarText(rows.reduce((sum, row) => sum + row.cost_usd, 0))}</Text>
          <Hint>Administrators see the use of the whole team.</Hint>
        </div>
      )}
      <div>
        <Text tone="muted">Read from cache</Text>
        <Text big>{rows === undefined ? '…' : share === undefined ? '–' : `${share}%`}</Text>
        {rows !== undefined && (
          <Hint>{`of ${tokensText(rows.reduce((sum, row) => sum + tokensRead(row), 0))} tokens read`}</Hint>
        )}
      </div>
      <div>
        <Text tone="muted">Cost not known</Text>
        <Text tone={unpriced.length > 0 ? 'wait' : undefined} big>
          {rows === undefined ? '…' : numberText(unpriced.reduce((sum, row) => sum + row.unpriced_requests, 0))}
        </Text>
        <Hint>
          {unpriced.length === 0
            ? 'requests: all have a price'
            : `requests to ${visibleText(unpricedModels.slice(0, 3).join(', '))}${unpricedModels.length > 3 ? ' and others' : ''}: they count for no limit.`}
        </Hint>
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
        <Text tone="muted">
          {`Spent in ${monthText(budget?.month ?? today)} `}
          <Text tone="dim">UTC</Text>
        </Text>
        <Text big>
          {spent === undefined ? '…' : dollarText(spent)}
          {limit !== undefined && <Text tone="dim" medium>{` of ${dollarText(limit)}`}</Text>}
        </Text>
        {spent !== undefined && limit !== undefined && (
          <Meter
            value={spent}
            of={limit}
            label="of the monthly limit"
            {...(estimate === undefined ? {} : { mark: estimate })}
          />
        )}
        {estimate !== undefined && (
          <Text tone={limit !== undefined && estimate > limit ? 'bad' : 'dim'} small>
            {`At the pace of the last 7 days: about ${dollarText(aboutOf(estimate))} by ${dayText(last)}${limit === undefined ? '' : estimate > limit ? ', above the limit' : ', below the limit'}.`}
          </Text>
        )}
      </div>
      <div>
        <Text tone="muted">Left</Text>
        <Text tone={limit !== undefined && spent !== undefined && spent >= limit ? 'bad' : undefined} big>
          {spent === undefined ? '…' : limit === undefined ? 'no limit' : dollarText(Math.max(0, limit - spent))}
        </Text>
        <Hint>
          {limit === undefined ? '' : 'At the limit, new runs get budget_exceeded. '}
          <TextLink to="/settings/$tab" params={{ tab: 'budget' }} search={{}}>
            {limit === undefined ? 'Set one' : 'Change it'}
          </TextLink>
        </Hint>
        {budget?.credits !== undefined && <Hint>{`${numberText(budget.credits)} credits`}</Hint>}
      </div>
    </>
  );
}
