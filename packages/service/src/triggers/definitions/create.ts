/** Creates factories from their definitions. */
import type { CreateFromFilesRequest, CreateFromFilesResponse } from '@runyard/contract/factories/factory-definitions';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, text } from '../../platform/store/database/statement.ts';
import type { Author } from '../../team/access/audit/record.ts';
import { createFactory } from '../factories/factories.ts';
import { type ApplyOutcome, applyWithin, type DefinitionDeps, prepareApply } from './apply.ts';

const readNamedOther = defineStatement({
  name: 'read_other_factory_of_name',
  text: 'SELECT uid FROM factories WHERE team_id = $1 AND name = $2 AND uid <> $3 ORDER BY uid LIMIT 1',
  row: { uid: text() },
});

/** Returns the UID of another factory of the team with this name; null if there is none. */
async function findFactoryNamed(db: Queryable, teamId: string, name: string, except: string): Promise<string | null> {
  return (await db.query(readNamedOther, [teamId, name, except]))[0]?.uid ?? null;
}

/** `too_many` becomes 409: the team has the largest number of factories. */
export type CreateOutcome =
  | { readonly kind: 'created'; readonly response: CreateFromFilesResponse }
  | { readonly kind: 'too_many' }
  /** 409: the team has a factory of this name already. */
  | { readonly kind: 'exists'; readonly uid: string }
  | Exclude<ApplyOutcome, { kind: 'applied' }>;

/** Thrown to roll the transaction back and return an outcome. */
class NotCreated extends Error {
  readonly outcome: CreateOutcome;
  constructor(outcome: CreateOutcome) {
    super('rolled back');
    this.outcome = outcome;
  }
}

/**
 * Creates a factory and applies its definition in one transaction. If the definition has faults, no factory is created. If the team has a
 * factory of the same name, creates none, so that a repeated request does not create a second one.
 */
export async function createFromFiles(
  deps: DefinitionDeps,
  by: Author,
  request: CreateFromFilesRequest,
): Promise<CreateOutcome> {
  const apply = await prepareApply(deps, by.teamId, { request, kept: {}, origin: {} });
  if ('kind' in apply) return apply;
  const { name } = apply.read.definition.factory;
  try {
    return await deps.db.transaction(async (tx): Promise<CreateOutcome> => {
      // Only the apply sets the alias, so that a taken alias is a fault of its file. The creation locks the factories of the team.
      const made = await createFactory(tx, by, { name });
      if (typeof made === 'string') throw new NotCreated({ kind: 'too_many' });
      const uid = await findFactoryNamed(tx, by.teamId, name, made.uid);
      if (uid !== null) throw new NotCreated({ kind: 'exists', uid });
      const outcome = await applyWithin(deps, tx, by, made.uid, apply);
      if (outcome.kind !== 'applied') throw new NotCreated(outcome);
      if (request.dry_run) throw new NotCreated({ kind: 'created', response: outcome.response });
      return { kind: 'created', response: { ...outcome.response, factory_uid: made.uid } };
    });
  } catch (error) {
    if (error instanceof NotCreated) return error.outcome;
    throw error;
  }
}
