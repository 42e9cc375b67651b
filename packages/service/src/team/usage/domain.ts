import { routes } from '@runyard/contract/routes';
import type { UsageReport } from '@runyard/contract/team/budgets';
import { isAtLeast } from '@runyard/contract/wire/access';
import type { Domain } from '../../platform/domain.ts';
import type { Signer } from '../../platform/secrets/signer.ts';
import { invalid } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { serve } from '../access/serve.ts';
import { type BudgetRules, readTeamBudget, updateTeamBudget } from './budget/team-budget.ts';
import { type ReadFactoryNames, readUsageReport } from './report.ts';

/** Routes for the budget of the team and for the usage report. */
const usageRoutes = ({
  db,
  signing,
  storageOf,
  factoryNamesOf,
  rules,
}: {
  readonly db: Database;
  readonly signing: Signer;
  storageOf(teamId: string): Promise<NonNullable<UsageReport['storage']>>;
  readonly factoryNamesOf: ReadFactoryNames;
  readonly rules: BudgetRules;
}): readonly ServedRoute[] => [
  serve(routes.getTeamBudget, ({ principal }) => readTeamBudget(db, principal.teamId, rules)),

  serve(routes.updateTeamBudget, async ({ principal, body }) => {
    const outcome = await updateTeamBudget(db, principal, body, rules);
    return outcome.kind === 'invalid' ? invalid(outcome.faults) : outcome.budget;
  }),

  // Only the role of the caller decides which usage the caller sees. No parameter of the query can show more.
  serve(routes.getUsage, async ({ principal, query }) => {
    const seesTeam = isAtLeast(principal.role, 'admin');
    const { kind, uid } = principal.creator;
    const deps = { db, signing, factoryNamesOf, now: Date.now };
    const outcome = await readUsageReport(deps, principal.teamId, seesTeam ? null : { kind, uid }, query);
    if (outcome.kind === 'invalid') return invalid(outcome.faults);
    if (!seesTeam) return { ...outcome.report, scope: 'own' as const };
    return { ...outcome.report, scope: 'team' as const, storage: await storageOf(principal.teamId) };
  }),
];

/** Stores the budgets of teams for models, and the usage of models. */
export const usageDomain = (deps: Parameters<typeof usageRoutes>[0]): Domain => ({
  name: 'usage',
  routes: () => usageRoutes(deps),
});
