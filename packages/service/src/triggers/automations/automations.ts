/** Creates, reads, changes and deletes the automations of factories. */
import type { CreateAutomationRequest } from '@runyard/contract/automations/automations';
import { maxFactoryAutomations } from '@runyard/contract/limits';
import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, integer, text } from '../../platform/store/database/statement.ts';
import type { RunActor } from '../../team/access/actor.ts';
import { type Author, recordChange } from '../../team/access/audit/record.ts';
import { checkedExecutor } from '../../team/access/executor.ts';
import { newUid } from '../../team/access/teams/uid.ts';
import { lockFactory } from '../factories/factories.ts';
import { setSchedulesOfAutomation } from '../schedules/of-automation.ts';
import {
  type AutomationAddress,
  type AutomationRow,
  automationColumns,
  automationRow,
  executorOf,
  schedulesOf,
} from './automation-row.ts';
import { type CheckDeps, type CheckOutcome, checkAutomation, type WantedAutomation } from './check.ts';

const readAll = defineStatement({
  name: 'read_automations_of_factory',
  text: `
    SELECT ${automationColumns} FROM automations a WHERE a.team_id = $1 AND a.factory_uid = $2
    ORDER BY a.name COLLATE "C", a.uid`,
  row: automationRow,
});

const readOne = defineStatement({
  name: 'read_automation',
  text: `SELECT ${automationColumns} FROM automations a WHERE a.team_id = $1 AND a.factory_uid = $2 AND a.uid = $3`,
  row: automationRow,
});

/**
 * Takes the strongest row lock at once, because deleting or renaming the automation needs it. Taking the strong lock later could cause
 * a deadlock with a delivery: the delivery first takes weak locks on all its automations, and then strong locks on those that start a
 * run.
 */
const lockOne = defineStatement({
  name: 'lock_automation',
  text: `
    SELECT ${automationColumns} FROM automations a WHERE a.team_id = $1 AND a.factory_uid = $2 AND a.uid = $3
    FOR UPDATE`,
  row: automationRow,
});

/**
 * Counts the other automations of the factory, and checks whether one of them has the name $2. $3: UID of the automation that is
 * replaced, or NULL.
 */
const readOthers = defineStatement({
  name: 'read_other_automations_of_factory',
  text: `
    SELECT count(*) AS count, coalesce(bool_or(name = $2), false) AS is_taken FROM automations
    WHERE factory_uid = $1 AND uid IS DISTINCT FROM $3`,
  row: { count: integer, is_taken: boolean },
});

const insert = defineStatement({
  name: 'insert_automation',
  text: `
    INSERT INTO automations AS a (uid, factory_uid, team_id, name, prompt, enabled, triggers, config, overlap, concurrency_key, agent,
      creator_kind, creator_uid, editor_kind, editor_uid, executor_kind, executor_uid)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $12, $13, $14, $15) RETURNING ${automationColumns}`,
  row: automationRow,
});

const update = defineStatement({
  name: 'update_automation',
  text: `
    UPDATE automations a SET name = $2, prompt = $3, enabled = $4, triggers = $5, config = $6, overlap = $7,
      concurrency_key = $8, agent = $9, editor_kind = $10, editor_uid = $11, executor_kind = $12, executor_uid = $13, spawn_failures = 0, last_spawn_error = NULL,
      updated_at = clock_timestamp()
    WHERE a.uid = $1 RETURNING ${automationColumns}`,
  row: automationRow,
});

const remove = defineStatement({
  name: 'delete_automation',
  text: 'DELETE FROM automations WHERE uid = $1 RETURNING uid',
  row: { uid: text() },
});

/**
 * Returns the members that the audit log shows. The audit log shows only the length of a prompt, because people write secrets into prompts.
 */
const stateOf = (row: AutomationRow) => ({
  name: row.name,
  factory_uid: row.factory_uid,
  enabled: row.enabled,
  agent: row.agent,
  triggers: row.triggers,
  overlap: row.overlap,
  concurrency_key: row.concurrency_key,
  editor: row.editor_uid,
  executor: row.executor_uid,
  prompt: `${row.prompt.length} characters`,
  environment_id: row.config?.environment_id ?? null,
  github_tools: row.config?.github_tools ?? null,
});

const subjectOf = ({ uid, name }: AutomationRow) => ({ type: 'automation', uid, name });

/** Returns the values that the statements store, in their order. */
const valuesOf = (wanted: WantedAutomation) => [
  wanted.name,
  wanted.prompt,
  wanted.enabled,
  JSON.stringify(wanted.triggers),
  wanted.config && JSON.stringify(wanted.config),
  wanted.overlap,
  wanted.concurrency_key,
  wanted.agent,
];

/** Stores the schedules of the schedule triggers of an automation. */
async function setSchedules(tx: Queryable, row: AutomationRow, editor: RunActor): Promise<void> {
  const { uid, team_id: teamId, name, enabled } = row;
  await setSchedulesOfAutomation(tx, { uid, teamId, name, enabled, editor }, schedulesOf(row));
}

/** The members of an automation that a request or a definition file sets. */
type AutomationMembers = Omit<CreateAutomationRequest, 'executor_uid'>;

/** Returns the automations of a factory, by name. */
export const listAutomations = (db: Queryable, teamId: string, factoryUid: string): Promise<AutomationRow[]> =>
  db.query(readAll, [teamId, factoryUid]);

/** Returns an automation; null if the team has no automation with these UIDs. */
export async function readAutomation(db: Queryable, address: AutomationAddress): Promise<AutomationRow | null> {
  const [row] = await db.query(readOne, [address.teamId, address.factoryUid, address.automationUid]);
  return row ?? null;
}

/**
 * Why an automation was not stored. `no_factory`, `not_found`: 404. `too_many`, `taken`: 409. The other outcomes are
 * the outcomes of creating a run.
 */
export type AutomationFailure =
  | { readonly kind: 'no_factory' | 'not_found' | 'too_many' | 'taken' }
  | Exclude<CheckOutcome, { kind: 'ok' }>;

export type AutomationOutcome = { readonly kind: 'stored'; readonly automation: AutomationRow } | AutomationFailure;

/**
 * Creates an automation. Its runs act as the executor; by default as the author. A failure changes nothing, so the caller may commit its
 * own earlier changes or roll them back.
 */
export async function createAutomation(
  deps: CheckDeps,
  tx: Queryable,
  author: Author,
  factoryUid: string,
  request: AutomationMembers,
  executor: RunActor = author.creator,
): Promise<AutomationOutcome> {
  // Lock the factory, so that no other transaction adds an automation or takes the name before this transaction ends.
  if (!(await lockFactory(tx, author.teamId, factoryUid))) return { kind: 'no_factory' };
  const [others] = await tx.query(readOthers, [factoryUid, request.name, null]);
  if ((others?.count ?? 0) >= maxFactoryAutomations) return { kind: 'too_many' };
  if (others?.is_taken) return { kind: 'taken' };
  const checked = await checkAutomation(deps, tx, { ...author, executor }, factoryUid, request);
  if (checked.kind !== 'ok') return checked;
  const { teamId, creator } = author;
  const values = [newUid(), factoryUid, teamId, ...valuesOf(checked.wanted), creator.kind, creator.uid];
  values.push(executor.kind, executor.uid);
  const [row] = await tx.query(insert, values);
  if (!row) throw new Error('the automation was not inserted');
  await setSchedules(tx, row, creator);
  await recordChange(tx, author, { action: 'automation.create', subject: subjectOf(row), after: stateOf(row) });
  return { kind: 'stored', automation: row };
}

/** Replaces an automation. Its executor stays unless `executor` is given. Resets the number of its failures to 0. */
export async function updateAutomation(
  deps: CheckDeps,
  tx: Queryable,
  author: Author,
  factoryUid: string,
  automationUid: string,
  request: AutomationMembers,
  executor?: RunActor,
): Promise<AutomationOutcome> {
  if (!(await lockFactory(tx, author.teamId, factoryUid))) return { kind: 'no_factory' };
  const [stored] = await tx.query(lockOne, [author.teamId, factoryUid, automationUid]);
  if (!stored) return { kind: 'not_found' };
  const [others] = await tx.query(readOthers, [factoryUid, request.name, automationUid]);
  if (others?.is_taken) return { kind: 'taken' };
  const { teamId, creator } = author;
  const checkedAs = executor ?? (await checkedExecutor(tx, teamId, executorOf(stored), creator));
  const checked = await checkAutomation(
    deps,
    tx,
    { teamId, creator, executor: checkedAs },
    factoryUid,
    request,
    stored,
  );
  if (checked.kind !== 'ok') return checked;
  const { kind, uid } = executor ?? executorOf(stored);
  const values = [automationUid, ...valuesOf(checked.wanted), creator.kind, creator.uid, kind, uid];
  const [row] = await tx.query(update, values);
  if (!row) throw new Error('the automation was not updated');
  await setSchedules(tx, row, creator);
  const change = { action: 'automation.update', before: stateOf(stored), after: stateOf(row) } as const;
  await recordChange(tx, author, { ...change, subject: subjectOf(row), ...(row.enabled ? {} : { endsAccess: true }) });
  return { kind: 'stored', automation: row };
}

/**
 * Deletes an automation, with the deliveries and schedule times for which it has not started a run yet. Returns false if the team has
 * no automation with these UIDs.
 */
export async function deleteAutomation(
  tx: Queryable,
  author: Author,
  factoryUid: string,
  automationUid: string,
): Promise<boolean> {
  const [stored] = await tx.query(lockOne, [author.teamId, factoryUid, automationUid]);
  if (!stored) return false;
  await tx.query(remove, [automationUid]);
  const change = { action: 'automation.delete', before: stateOf(stored), endsAccess: true } as const;
  await recordChange(tx, author, { ...change, subject: subjectOf(stored) });
  return true;
}
