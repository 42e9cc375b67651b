/** Notifies people when the budget of their team is used up. */
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, uuid } from '../../platform/store/database/statement.ts';
import { type BudgetRules, teamBudgetState } from '../../team/usage/budget/team-budget.ts';
import { notifyOfOwner } from './notify-owner.ts';
import { checkNotifyRules, readNotifyRules, setNotifyRules } from './rules.ts';

/** The rules of budgets, for the room that stores budgets. */
export const budgetRules: BudgetRules = {
  // A budget has only rules for the event `budget`.
  read: async (db, teamId) =>
    (await readNotifyRules(db, { teamId })).flatMap(({ on, to }) => (on === 'budget' ? [{ on, to }] : [])),
  check: async (db, by, rules, present) => await checkNotifyRules(db, rules, { by, present }),
  set: async (tx, teamId, rules) => await setNotifyRules(tx, { teamId }, rules),
};

const changed = `
    FROM notify_rules n CROSS JOIN LATERAL (SELECT ${teamBudgetState('n.team_id')}) s
    WHERE n.schedule_id IS NULL AND n.automation_uid IS NULL AND (s.is_month_spent OR s.is_out_of_credits) <> n.is_told`;

/** Finds budgets of which people must be notified, or that were raised since. */
export const changedBudgets = defineStatement({
  name: 'find_changed_budgets',
  text: `SELECT n.id ${changed} LIMIT 100`,
  row: { id: uuid },
});

/** The row is locked, so only one process notifies of a change. */
const mark = defineStatement({
  name: 'mark_changed_budget',
  text: `
    WITH locked AS (SELECT id FROM notify_rules WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED),
    now AS (SELECT n.id, s.is_month_spent, s.is_out_of_credits ${changed} AND n.id = (SELECT id FROM locked))
    UPDATE notify_rules n SET is_told = NOT n.is_told FROM now WHERE n.id = now.id
    RETURNING n.team_id, n.is_told, now.is_out_of_credits`,
  row: { team_id: uuid, is_told: boolean, is_out_of_credits: boolean },
});

const resolve = defineStatement({
  name: 'resolve_notifications_of_budget',
  text: "DELETE FROM inbox_items WHERE team_id = $1 AND kind = 'budget'",
  row: {},
});

async function noteChange(tx: Queryable, id: string): Promise<void> {
  const [budget] = await tx.query(mark, [id]);
  if (!budget) return;
  const { team_id: teamId, is_told: isSpent, is_out_of_credits: hasNoCredits } = budget;
  if (!isSpent) {
    await tx.query(resolve, [teamId]);
    return;
  }
  await notifyOfOwner(
    tx,
    { teamId },
    {
      on: 'budget',
      title: 'Budget of the team',
      description: hasNoCredits ? 'The team has no credits left.' : 'The team has spent its monthly limit.',
    },
  );
}

/** Notifies people of budgets that are used up, and resolves the notifications of budgets that are not any more. */
export async function noteBudgets(db: Database): Promise<void> {
  for (const { id } of await db.query(changedBudgets)) await db.transaction((tx) => noteChange(tx, id));
}
