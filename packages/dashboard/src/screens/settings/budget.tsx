import type { TeamBudget } from '@runyard/contract/team/budgets';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useBudget } from '../../api/lists.ts';
import { useClient, useSession } from '../../api/session.ts';
import { Fact, Facts, P, Stack, Text, TextLink } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { TextField, textOf } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { dollarText, numberText } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Meter } from '../../parts/meter.tsx';
import { budgetEvents, NotifyField, rulesOf } from '../../parts/notify-field.tsx';
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
          <Button kind="primary" onClick={() => setChanging(true)} disabled={!budget.data}>
            Change…
          </Button>
        }
      />
      <Loaded query={budget} rows={2}>
        {(data) => (
          <>
            <BudgetFacts budget={data} />
            {isChanging && <ChangeDialog budget={data} close={() => setChanging(false)} />}
          </>
        )}
      </Loaded>
      <P tone="muted">
        <TextLink to="/usage">Who or what spends it</TextLink>
      </P>
    </>
  );
}

function BudgetFacts({ budget }: { budget: TeamBudget }) {
  const { spent_usd: spent, monthly_limit_usd: limit, credits } = budget;
  return (
    <Stack gap={2} className={styles.narrow}>
      <p>
        <Text big>{dollarText(spent)}</Text>{' '}
        <Text tone="dim">
          {limit === undefined
            ? `spent in ${budget.month}, UTC; no limit`
            : `of ${dollarText(limit)} in ${budget.month}, UTC`}
        </Text>
      </p>
      {limit !== undefined && <Meter value={spent} of={limit} label="of the monthly limit" />}
      <Facts far>
        <Fact name="Left this month">{limit !== undefined && dollarText(Math.max(0, limit - spent))}</Fact>
        <Fact name="Credits left">
          {credits !== undefined && (
            <Text tone={credits <= 0 ? 'bad' : undefined}>{`${numberText(credits)}; a credit is a US cent`}</Text>
          )}
        </Fact>
        <Fact name="Changed">{budget.updated_at && <Ago time={budget.updated_at} />}</Fact>
      </Facts>
    </Stack>
  );
}

function ChangeDialog({ budget, close }: { budget: TeamBudget; close: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const { team, person } = useSession();
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
          body: {
            monthly_limit_usd: numberOf('monthly_limit_usd'),
            credits: numberOf('credits'),
            notify: rulesOf(data, budget.notify, person.uid, budgetEvents).map(({ to }) => ({ on: 'budget', to })),
          },
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
      <NotifyField rules={budget.notify} offered={budgetEvents} />
    </FormDialog>
  );
}
