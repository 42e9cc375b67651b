import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { readTeamBudget, updateTeamBudget } from '../../../team/usage/budget/team-budget.ts';
import { readUsageReport } from '../../../team/usage/report.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { invalid } from '../server/problem.ts';

/** Registers the team's budget and the usage report. */
export function registerBudgetRoutes(app: FastifyInstance, { db, signing }: ServiceDeps): void {
  addRoute(app, routes.getTeamBudget, ({ principal }) => readTeamBudget(db, principal.teamId));

  addRoute(app, routes.updateTeamBudget, ({ principal, body }) => updateTeamBudget(db, principal, body));

  addRoute(app, routes.getUsage, async ({ principal, query }) => {
    const outcome = await readUsageReport({ db, signing, now: Date.now }, principal.teamId, query);
    return outcome.kind === 'ok' ? outcome.report : invalid(outcome.faults);
  });
}
