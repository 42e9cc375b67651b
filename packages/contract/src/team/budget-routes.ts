import { type Allow, administrators } from '../wire/access.ts';
import type { Route } from '../wire/route.ts';
import { TeamBudget, UpdateTeamBudgetRequest, UsageQuery, UsageReport } from './budgets.ts';

/** Members get a report of their own use. Agent keys are refused, because a program in a sandbox may have an agent key. */
const membersAlone = { user: 'member' } as const satisfies Allow;

/**
 * Budgets and reports of a team are only for administrators, because a budget limits money and a report shows the spending of each
 * person. Run tokens and agent keys are refused, because a sandbox may have them.
 */
export const budgetRoutes = {
  getTeamBudget: {
    method: 'GET',
    path: '/budget',
    tag: 'usage',
    summary: "Read the team's budget",
    allow: administrators,
    answer: { status: 200, description: 'The limits, and the spending of this month', schema: TeamBudget },
  },
  updateTeamBudget: {
    method: 'PATCH',
    path: '/budget',
    tag: 'usage',
    summary: "Change the team's monthly limit or credits",
    description:
      'When a limit is used up, creating a run answers 403 `budget_exceeded` or `insufficient_credits`, and a run that sends another request to its model ends FAILED with that code.',
    allow: administrators,
    body: UpdateTeamBudgetRequest,
    answer: { status: 200, description: 'The budget as it is now', schema: TeamBudget },
    errors: { 400: 'A wrong value' },
  },
  getUsage: {
    method: 'GET',
    path: '/usage',
    tag: 'usage',
    summary: "Report the team's use of models",
    description:
      'By day, model, agent, creator, automation, factory and environment, for at most 366 days. Deleted runs stay in the report. Administrators get the usage of the team. Members get the usage of runs that they created, and `scope` is `own`.',
    allow: membersAlone,
    query: UsageQuery,
    answer: { status: 200, description: 'A page of sums', schema: UsageReport },
    errors: { 400: 'A wrong value, more than 366 days, or a cursor of another report' },
  },
} as const satisfies Record<string, Route>;
