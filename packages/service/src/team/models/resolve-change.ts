import type { UpdateTeamModelSettingsRequest } from '@runyard/contract/team/models';
import type { Fault } from '../../platform/fault.ts';
import type { Models } from './models.ts';
import type { TeamModelsChange } from './team-models.ts';

/** Converts the names of a request to the ids of the list. Returns the faults of names that cannot be chosen instead. */
export function resolveChange(
  models: Models,
  {
    default_model_id: wanted,
    fallback_model_ids: fallbacks,
    disable = [],
    enable = [],
  }: UpdateTeamModelSettingsRequest,
):
  | { readonly ok: true; readonly change: TeamModelsChange }
  | { readonly ok: false; readonly faults: readonly Fault[] } {
  const faults: Fault[] = [];
  /** Returns the ids of named models in the form of the list; with `isAnyKnown` also those of models that cannot be used now. */
  const idsOf = (path: string, named: readonly string[], isAnyKnown = false): string[] =>
    named.flatMap((name, index) => {
      const resolved = models.resolve(name);
      if (resolved.ok && (isAnyKnown || resolved.model.agentModel || path === 'default_model_id'))
        return [resolved.model.id];
      if (isAnyKnown && models.list().models.some(({ id }) => id === name)) return [name];
      const message = resolved.ok ? 'must be a language model of a provider' : resolved.message;
      faults.push({ path: path === 'default_model_id' ? path : `${path}.${index}`, message });
      return [];
    });
  const defaultId = typeof wanted === 'string' ? idsOf('default_model_id', [wanted])[0] : (wanted ?? undefined);
  const change = {
    ...(wanted === undefined ? {} : { defaultId: wanted === null ? null : (defaultId ?? null) }),
    ...(fallbacks ? { fallbackIds: [...new Set(idsOf('fallback_model_ids', fallbacks))] } : {}),
    disable: idsOf('disable', disable, true),
    // A model that is not known any more can be enabled too: its id is removed from the list.
    enable: enable.map((name) => {
      const resolved = models.resolve(name);
      return resolved.ok ? resolved.model.id : name;
    }),
  };
  return faults.length > 0 ? { ok: false, faults } : { ok: true, change };
}
