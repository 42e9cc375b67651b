import type { TeamBudget } from '@runyard/contract/team/budgets';
import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useBudget } from '../../api/lists.ts';
import { useClient, useSession } from '../../api/session.ts';
import { TextField, textOf } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { dollarText, numberText } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Meter } from '../../parts/meter.tsx';
import { Ago } from '../../parts/time.tsx';
import { Section } from './section.tsx';
import styles from './settings.module.css';

/** Shows the team's monthly limit for spending on models and the remaining amount. Administrators can change the limit. */
export function Budget() {
  const budget = useBudget();
  const [isChanging, setChanging] = useState(false);
  return (
    <>
      <Section
        title="Budget"
        about="At the limit, new runs are refused, and a run that sends another request to its model ends with budget_exceeded."
        action={
          <button type="button" className="btn pri" onClick={() => setChanging(true)} disabled={!budget.data}>
            Change…
          </button>
        }
      />
      <Loaded query={budget} rows={2}>
        {(data) => (
          <>
            <Facts budget={data} />
            {isChanging && <ChangeDialog budget={data} close={() => setChanging(false)} />}
          </>
        )}
      </Loaded>
      <p className="mut">
        <Link to="/usage" className="link">
          Who or what spends it
        </Link>
      </p>
    </>
  );
}

function Facts({ budget }: { budget: TeamBudget }) {
  const { spent_usd: spent, monthly_limit_usd: limit, credits } = budget;
  return (
    <div className={`stack s2 ${styles.narrow}`}>
      <p>
        <span className="big">{dollarText(spent)}</span>{' '}
        <span className="dim">
          {limit === undefined
            ? `spent in ${budget.month}, UTC; no limit`
            : `of ${dollarText(limit)} in ${budget.month}, UTC`}
        </span>
      </p>
      {limit !== undefined && <Meter value={spent} of={limit} label="of the monthly limit" />}
      <dl className="kv far">
        {limit !== undefined && (
          <>
            <dt>Left this month</dt>
            <dd>{dollarText(Math.max(0, limit - spent))}</dd>
          </>
        )}
        {credits !== undefined && (
          <>
            <dt>Credits left</dt>
            <dd className={credits <= 0 ? 'badc' : ''}>{`${numberText(credits)}; a credit is a US cent`}</dd>
          </>
        )}
        {budget.updated_at !== undefined && (
          <>
            <dt>Changed</dt>
            <dd>
              <Ago time={budget.updated_at} />
            </dd>
          </>
        )}
      </dl>
    </div>
  );
}

function ChangeDialog({ budget, close }: { budget: TeamBudget; close: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const { team } = useSession();
  return (
    <FormDialog
      title="Change the budget"
      action="Change"
      close={close}
      send={async (data) => {
        const numberOf = (name: string): number | null => {
          const text = textOf(data, name);
          return text === undefined ? null : Number(text);
        };
        const answer = await client.updateTeamBudget({
          body: { monthly_limit_usd: numberOf('monthly_limit_usd'), credits: numberOf('credits') },
        });
        queries.setQueryData(['budget', team.uid], answer);
      }}
    >
      <TextField
        label="Monthly limit, US dollars"
        path="monthly_limit_usd"
        type="number"
        min={0}
        step="any"
        defaultValue={budget.monthly_limit_usd}
        hint="Of a calendar month in UTC. Empty: no limit"
      />
      <TextField
        label="Credits"
        path="credits"
        type="number"
        min={0}
        step="any"
        defaultValue={budget.credits}
        hint="Credits of the team from now on; a credit is a US cent. Empty: the team does not use credits"
      />
    </FormDialog>
  );
}
