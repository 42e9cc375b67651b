/** Stores the choices of teams about models. */
import { maxDisabledModels } from '@runyard/contract/limits';
import type { UpdateTeamModelSettingsRequest } from '@runyard/contract/team/models';
import type { Fault } from '../../platform/fault.ts';
import { batched } from '../../platform/store/database/batched.ts';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import {
  defineStatement,
  json,
  nullable,
  type RowOf,
  text,
  texts,
  timestamp,
  uuid,
} from '../../platform/store/database/statement.ts';
import { type Author, recordChange } from '../access/audit/record.ts';
import type { ModelChoices, Outage } from './choices.ts';
import type { Models } from './models.ts';

const readChoices = defineStatement({
  name: 'read_model_choices',
  text: `
    SELECT t.id AS team_id, m.default_model_id, coalesce(m.fallback_model_ids, '{}') AS fallback_model_ids,
      coalesce(m.disabled_model_ids, '{}') AS disabled_model_ids,
      (SELECT coalesce(json_agg(json_build_object('provider', o.provider, 'beganAt', o.began_at::text, 'probeInSeconds',
          greatest(1, ceil(extract(epoch FROM o.next_probe_at - clock_timestamp())))::int)), '[]')
        FROM model_outages o WHERE o.ended_at IS NULL) AS outages
    FROM unnest($1::uuid[]) AS t(id) LEFT JOIN team_models m ON m.team_id = t.id`,
  row: {
    team_id: uuid,
    default_model_id: nullable(text()),
    fallback_model_ids: texts,
    disabled_model_ids: texts,
    outages: json<readonly Outage[]>(),
  },
});

async function readOf(db: Queryable, teamIds: readonly string[]): Promise<Map<string, ModelChoices>> {
  const rows = await db.query(readChoices, [[...new Set(teamIds)]]);
  return new Map(
    rows.map((row) => [
      row.team_id,
      {
        defaultId: row.default_model_id,
        fallbackIds: row.fallback_model_ids,
        disabledIds: row.disabled_model_ids,
        outages: row.outages,
      },
    ]),
  );
}

interface Asked {
  readonly teamId: string;
  found?: ModelChoices | undefined;
}

const readBatched = batched<Queryable, Asked>(200, async (db, items) => {
  const found = await readOf(
    db,
    items.map(({ teamId }) => teamId),
  );
  for (const item of items) item.found = found.get(item.teamId);
});

/** Reads the present choices of a team. Concurrent reads share a query, for example if many runs are created at once. */
export async function readModelChoices(db: Queryable, teamId: string): Promise<ModelChoices> {
  const asked: Asked = { teamId };
  await readBatched(db, asked);
  if (!asked.found) throw new Error('the choices of the team were not read');
  return asked.found;
}

const maxAgeMs = 1000;
const maxRemembered = 10_000;
/** The last reads, by database and by team. */
const recent = new WeakMap<Queryable, Map<string, { readonly readAt: number; readonly value: ModelChoices }>>();

/**
 * Returns the choices of a team, at most a second old, so that not each creation of a run needs a query. This is exact enough for the check
 * of a request, because the choices are read again when the run begins, and for each request to a model. `tx`: the transaction of the
 * caller, if it has one.
 */
export async function readRecentModelChoices(db: Queryable, teamId: string, tx = db): Promise<ModelChoices> {
  const known = recent.get(db) ?? new Map();
  recent.set(db, known);
  const last = known.get(teamId);
  if (last && Date.now() - last.readAt < maxAgeMs) return last.value;
  const value = await readModelChoices(tx, teamId);
  if (known.size >= maxRemembered) known.clear();
  // If the choices changed during the read, the map `known` is not in `recent` any more, so nobody reads the old value from it.
  // Values are stored only after the read, so a transaction never waits for the read of another transaction.
  known.set(teamId, { readAt: Date.now(), value });
  return value;
}

/** Makes this process read all choices again, after it has changed choices or outages. Other processes read them again within a second. */
export const forgetModelChoices = (db: Queryable): void => {
  recent.delete(db);
};

/** The stored choices of a team. */
export interface TeamModels {
  readonly defaultId: string | null;
  readonly fallbackIds: readonly string[];
  readonly disabledIds: readonly string[];
  /** Time of the last change, in RFC 3339 format; null if the team has never chosen. */
  readonly updatedAt: string | null;
}

const row = {
  default_model_id: nullable(text()),
  fallback_model_ids: texts,
  disabled_model_ids: texts,
  updated_at: timestamp,
};
const columns = Object.keys(row).join(', ');

const readTeam = defineStatement({
  name: 'read_team_models',
  text: `SELECT ${columns} FROM team_models WHERE team_id = $1`,
  row,
});

const makeRow = defineStatement({
  name: 'insert_team_models',
  text: 'INSERT INTO team_models (team_id) VALUES ($1) ON CONFLICT (team_id) DO NOTHING',
  row: {},
});

const lockTeam = defineStatement({
  name: 'lock_team_models',
  text: `SELECT ${columns} FROM team_models WHERE team_id = $1 FOR UPDATE`,
  row,
});

const update = defineStatement({
  name: 'update_team_models',
  text: `
    UPDATE team_models SET default_model_id = $2, fallback_model_ids = $3, disabled_model_ids = $4, updated_at = clock_timestamp()
    WHERE team_id = $1 RETURNING ${columns}`,
  row,
});

const toTeamModels = (found: RowOf<typeof readTeam>): TeamModels => ({
  defaultId: found.default_model_id,
  fallbackIds: found.fallback_model_ids,
  disabledIds: found.disabled_model_ids,
  updatedAt: found.updated_at,
});

/** Returns the stored choices of a team. */
export async function readTeamModels(db: Queryable, teamId: string): Promise<TeamModels> {
  const [found] = await db.query(readTeam, [teamId]);
  return found ? toTeamModels(found) : { defaultId: null, fallbackIds: [], disabledIds: [], updatedAt: null };
}

/** Changes to the choices of a team, with the ids of the list of models. */
export interface TeamModelsChange {
  /** null sets the default model of the service. */
  readonly defaultId?: string | null;
  readonly fallbackIds?: readonly string[];
  readonly disable: readonly string[];
  readonly enable: readonly string[];
}

/** `conflict` 400: the default or a fallback would be disabled; `too_many` 400: too many models would be disabled. */
export type TeamModelsOutcome =
  | { readonly kind: 'changed'; readonly models: TeamModels }
  | { readonly kind: 'conflict'; readonly path: 'default_model_id' | 'fallback_model_ids'; readonly modelId: string }
  | { readonly kind: 'too_many' };

/** Returns the choices as the audit log shows them, under the member names of the contract. */
const stateOf = ({ defaultId, fallbackIds, disabledIds }: TeamModels) => ({
  default_model_id: defaultId,
  fallback_model_ids: fallbackIds,
  disabled_model_ids: disabledIds,
});

/** Changes the choices of a team. Concurrent changes are made one after another. */
export async function changeTeamModels(
  db: Database,
  by: Author & { readonly teamUid: string },
  change: TeamModelsChange,
): Promise<TeamModelsOutcome> {
  const { teamId, teamUid } = by;
  const outcome = await db.transaction(async (tx): Promise<TeamModelsOutcome> => {
    await tx.query(makeRow, [teamId]);
    const [old] = await tx.query(lockTeam, [teamId]);
    if (!old) throw new Error('the team has no row of choices');
    const disabled = new Set([...old.disabled_model_ids, ...change.disable]);
    for (const id of change.enable) disabled.delete(id);
    if (disabled.size > maxDisabledModels) return { kind: 'too_many' };
    const defaultId = change.defaultId === undefined ? old.default_model_id : change.defaultId;
    const fallbackIds = change.fallbackIds ?? old.fallback_model_ids;
    if (defaultId !== null && disabled.has(defaultId))
      return { kind: 'conflict', path: 'default_model_id', modelId: defaultId };
    const lost = fallbackIds.find((id) => disabled.has(id));
    if (lost !== undefined) return { kind: 'conflict', path: 'fallback_model_ids', modelId: lost };
    const [changed] = await tx.query(update, [teamId, defaultId, fallbackIds, [...disabled].sort()]);
    if (!changed) throw new Error('the choices of the team were not stored');
    const models = toTeamModels(changed);
    const states = { before: stateOf(toTeamModels(old)), after: stateOf(models) };
    await recordChange(tx, by, {
      action: 'model_settings.update',
      subject: { type: 'model_settings', uid: teamUid },
      ...states,
    });
    return { kind: 'changed', models };
  });
  forgetModelChoices(db);
  return outcome;
}

/** Converts the names of models in a request to the ids of the list of models. If names cannot be chosen, returns their faults instead. */
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
  /**
   * Returns the ids that the list of models has for the named models. If `isAnyKnown` is true, also returns ids of models that cannot be
   * used now.
   */
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
    // A model that is not known any more can also be enabled: then its id is removed from the list of disabled models.
    enable: enable.map((name) => {
      const resolved = models.resolve(name);
      return resolved.ok ? resolved.model.id : name;
    }),
  };
  return faults.length > 0 ? { ok: false, faults } : { ok: true, change };
}
