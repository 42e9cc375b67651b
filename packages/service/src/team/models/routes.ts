import { maxDisabledModels } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { TeamModelSettings } from '@runyard/contract/team/models';
import { invalid } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { serve } from '../access/serve.ts';
import type { Models } from './models.ts';
import { changeTeamModels, readModelChoices, readTeamModels, resolveChange, type TeamModels } from './team-models.ts';

const toSettings = ({ defaultId, fallbackIds, disabledIds, updatedAt }: TeamModels): TeamModelSettings => ({
  ...(defaultId === null ? {} : { default_model_id: defaultId }),
  fallback_model_ids: [...fallbackIds],
  disabled_model_ids: [...disabledIds],
  ...(updatedAt === null ? {} : { updated_at: updatedAt }),
});

interface ModelRouteDeps {
  readonly db: Database;
  readonly models: Models;
}

/**
 * Routes for the list of models, and for the team's choices about models. The team is the team of the key: no request body names a team.
 */
export const modelRoutes = (
  { db, models }: ModelRouteDeps,
  isOutOfRequests: (db: Database, teamId: string) => Promise<boolean>,
): readonly ServedRoute[] => [
  serve(routes.listModels, async ({ principal: { teamId } }) => {
    const choices = await readModelChoices(db, teamId);
    return models.list({ ...choices, isOutOfRequests: await isOutOfRequests(db, teamId) });
  }),

  serve(routes.getModelSettings, async ({ principal }) => toSettings(await readTeamModels(db, principal.teamId))),

  serve(routes.updateModelSettings, async ({ principal, body }) => {
    const resolved = resolveChange(models, body);
    if (!resolved.ok) return invalid(resolved.faults);
    const outcome = await changeTeamModels(db, principal, resolved.change);
    switch (outcome.kind) {
      case 'changed':
        return toSettings(outcome.models);
      case 'conflict': {
        const message = `${outcome.modelId} would be disabled; choose another model, or enable it`;
        return invalid([{ path: outcome.path, message }]);
      }
      case 'too_many':
        return invalid([{ path: 'disable', message: `a team may disable at most ${maxDisabledModels} models` }]);
    }
  }),
];
