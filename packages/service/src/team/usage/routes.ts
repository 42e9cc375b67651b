import { routes } from '@runyard/contract/routes';
import type { UsageReport } from '@runyard/contract/team/budgets';
import type { Signer } from '../../platform/secrets/signer.ts';
import { invalid } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { serve } from '../access/serve.ts';
import { readTeamBudget, updateTeamBudget } from './budget/team-budget.ts';
import { readUsageReport } from './report.ts';

/** The team's budget and the usage report. */
export const usageRoutes = ({
  db,
  signing,
  storageOf,
}: {
  readonly db: Database;
  readonly signing: Signer;
  storageOf(teamId: string): Promise<UsageReport['storage']>;
}): readonly ServedRoute[] => [
  serve(routes.getTeamBudget, ({ principal }) => readTeamBudget(db, principal.teamId)),

  serve(routes.updateTeamBudget, ({ principal, body }) => updateTeamBudget(db, principal, body)),

  serve(routes.getUsage, async ({ principal, query }) => {
    const outcome = await readUsageReport({ db, signing, now: Date.now }, principal.teamId, query);
    if (outcome.kind === 'invalid') return invalid(outcome.faults);
    return { ...outcome.report, storage: await storageOf(principal.teamId) };
  }),
];
