import { maxDisabledModels } from '@runyard/contract/limits';
import type { TeamModelSettings } from '@runyard/contract/models';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import type { Fault } from '../../../platform/fault.ts';
import { invalid } from '../../../platform/serving/refusal.ts';
import { changeTeamModels, readTeamModels, type TeamModels } from '../../../team/models/team-models.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

const toSettings = ({ defaultId, fallbackIds, disabledIds, updatedAt }: TeamModels): TeamModelSettings => ({
  ...(defaultId === null ? {} : { default_model_id: defaultId }),
  fallback_model_ids: [...fallbackIds],
  disabled_model_ids: [...disabledIds],
  ...(updatedAt === null ? {} : { updated_at: updatedAt }),
});

/** Registers the team's choices about models. The team is that of the key: no body names one. */
export function registerModelSettingsRoutes(app: FastifyInstance, { db, models }: ServiceDeps): void {
  /** Returns the ids of named models in the form of the list; with `isAnyKnown` also those of models that cannot be used now. */
  const idsOf = (path: string, named: readonly string[], faults: Fault[], isAnyKnown = false): string[] =>
    named.flatMap((name, index) => {
      const resolved = models.resolve(name);
      if (resolved.ok && (isAnyKnown || resolved.model.agentModel || path === 'default_model_id'))
        return [resolved.model.id];
      if (isAnyKnown && models.list().models.some(({ id }) => id === name)) return [name];
      const message = resolved.ok ? 'must be a language model of a provider' : resolved.message;
      faults.push({ path: path === 'default_model_id' ? path : `${path}.${index}`, message });
      return [];
    });

  addRoute(app, routes.getModelSettings, async ({ principal }) =>
    toSettings(await readTeamModels(db, principal.teamId)),
  );

  addRoute(app, routes.updateModelSettings, async ({ principal, body }) => {
    const faults: Fault[] = [];
    const { default_model_id: wanted, fallback_model_ids: fallbacks, disable = [], enable = [] } = body;
    const defaultId =
      typeof wanted === 'string' ? idsOf('default_model_id', [wanted], faults)[0] : (wanted ?? undefined);
    const change = {
      ...(wanted === undefined ? {} : { defaultId: wanted === null ? null : (defaultId ?? null) }),
      ...(fallbacks ? { fallbackIds: [...new Set(idsOf('fallback_model_ids', fallbacks, faults))] } : {}),
      disable: idsOf('disable', disable, faults, true),
      // A model that is not known any more can be enabled too: its id is removed from the list.
      enable: enable.map((name) => {
        const resolved = models.resolve(name);
        return resolved.ok ? resolved.model.id : name;
      }),
    };
    if (faults.length > 0) return invalid(faults);
    const outcome = await changeTeamModels(db, principal, change);
    switch (outcome.kind) {
      case 'changed':
        return toSettings(outcome.models);
      case 'conflict': {
        const message = `${outcome.modelId} would be disabled; choose another one, or enable it`;
        return invalid([{ path: outcome.path, message }]);
      }
      case 'too_many':
        return invalid([{ path: 'disable', message: `a team may disable at most ${maxDisabledModels} models` }]);
    }
  });
}
