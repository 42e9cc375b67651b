import type { CreateScheduledAgentRequest, UpdateScheduledAgentRequest } from '@runyard/contract/schedules/schedules';
import type { Fault } from '../../platform/fault.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import { checkNotifyRules, readNotifyRules, setNotifyRules } from '../../runs/inbox/rules.ts';
import type { RunActor } from '../../team/access/actor.ts';
import { checkedExecutor, executorNotAllowed, executorOfRequest } from '../../team/access/executor.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { type Owner, ownerOf } from '../../team/access/ownership.ts';
import type { ContentPolicy, PolicyVerdict } from '../../team/content-policy/content-policy.ts';
import type { Models } from '../../team/models/models.ts';
import { type CheckDeps, type CheckOutcome, checkSchedule } from './check.ts';
import { executorOfSchedule, ownerOfSchedule, type ScheduleRow } from './schedule-row.ts';
import {
  createSchedule,
  deleteSchedule,
  lockSchedule,
  readSchedule,
  setScheduleEnabled,
  updateSchedule,
} from './schedules.ts';

export interface ManageDeps {
  readonly db: Database;
  readonly models: Models;
  readonly vault: Vault;
  /** Checks prompts. Absent: prompts are not checked. */
  readonly contentPolicy?: ContentPolicy;
}

type CheckFailure = Exclude<CheckOutcome, { kind: 'ok' }>;

const allowed: PolicyVerdict = { kind: 'allowed' };

/**
 * Asks the content policy about the prompts of a schedule as they would be stored. Call this outside of a transaction, because the
 * content policy is another program and may answer slowly. If the request is invalid for another reason, returns `allowed`, because the
 * later check refuses the request.
 */
export async function checkPrompt(
  deps: ManageDeps,
  by: Principal,
  wanted: CreateScheduledAgentRequest | UpdateScheduledAgentRequest,
  stored?: ScheduleRow,
): Promise<PolicyVerdict> {
  if (!deps.contentPolicy) return allowed;
  const executor = stored && (await checkedExecutor(deps.db, by.teamId, executorOfSchedule(stored), by.creator));
  const checked = await checkSchedule(deps, { ...by, ...(executor ? { executor } : {}) }, wanted, stored);
  if (checked.kind !== 'ok') return allowed;
  const { prompt, agent_config } = checked.wanted;
  const texts = [prompt, agent_config?.base_prompt ?? ''].map((text) => ({ kind: 'prompt' as const, text }));
  return await deps.contentPolicy.check(by.teamId, texts);
}

/**
 * Checks and writes a new schedule in the transaction `deps.db`. The caller has called `checkPrompt`, and has checked that `by` may
 * own the schedule.
 */
export async function addSchedule(
  deps: CheckDeps,
  by: Principal,
  wanted: CreateScheduledAgentRequest,
): Promise<{ readonly kind: 'added'; readonly row: ScheduleRow } | { readonly kind: 'too_many' } | CheckFailure> {
  const owner = ownerOf(by, wanted.team === false ? 'personal' : 'team');
  if (owner === 'forbidden') throw new Error('agents have no personal schedules');
  const named = await executorOfRequest(deps.db, by, wanted.executor_uid);
  if (named === null || !mayExecute(owner, named)) return executorRefused;
  const executor = named ?? by.creator;
  const checked = await checkSchedule(deps, { ...by, executor }, wanted);
  const faults = await checkNotifyRules(deps.db, wanted.notify, { by, present: [], personal: owner.userUid });
  if (faults.length > 0 && (checked.kind === 'ok' || checked.kind === 'invalid')) return withFaults(checked, faults);
  if (checked.kind !== 'ok') return checked;
  const row = await createSchedule(deps.db, by, owner, checked.wanted, wanted.enabled, executor);
  if (row === 'too_many') return { kind: 'too_many' };
  await setNotifyRules(deps.db, { teamId: by.teamId, scheduleId: row.id }, wanted.notify);
  return { kind: 'added', row };
}

export type ChangeOutcome =
  | { readonly kind: 'changed'; readonly row: ScheduleRow }
  /** 404 */
  | { readonly kind: 'not_found' }
  | Exclude<PolicyVerdict, { kind: 'allowed' }>
  | CheckFailure;

/** Adds faults of `notify` to the outcome of the check of the other members. */
const withFaults = (checked: CheckOutcome, faults: readonly Fault[]): CheckFailure => ({
  kind: 'invalid',
  faults: [...(checked.kind === 'invalid' ? checked.faults : []), ...faults],
});

const executorRefused: CheckFailure = { kind: 'forbidden', detail: executorNotAllowed };

/** Returns whether the runs of a schedule of this owner may act as the executor. The runs of a personal schedule act only as its person. */
const mayExecute = ({ userUid }: Owner, executor: RunActor | undefined): boolean =>
  userUid === undefined || executor === undefined || (executor.kind === 'user' && executor.uid === userUid);

const noSchedule: ChangeOutcome = { kind: 'not_found' };

/** Replaces the members of a schedule, if the caller may change it. */
export async function changeSchedule(
  deps: ManageDeps,
  by: Principal,
  id: string,
  wanted: UpdateScheduledAgentRequest,
): Promise<ChangeOutcome> {
  if (!isUuid(id)) return noSchedule;
  const before = await readSchedule(deps.db, by, id);
  const verdict = before ? await checkPrompt(deps, by, wanted, before) : allowed;
  if (verdict.kind !== 'allowed') return verdict;
  return await deps.db.transaction(async (tx): Promise<ChangeOutcome> => {
    const stored = await lockSchedule(tx, by, id, 'change');
    if (!stored) return noSchedule;
    const named = await executorOfRequest(tx, by, wanted.executor_uid);
    if (named === null || !mayExecute(ownerOfSchedule(stored), named)) return executorRefused;
    const present = executorOfSchedule(stored);
    const executor = named ?? (await checkedExecutor(tx, by.teamId, present, by.creator));
    const checked = await checkSchedule({ ...deps, db: tx }, { ...by, executor }, wanted, stored);
    const owner = { teamId: by.teamId, scheduleId: stored.id };
    const rules = {
      by,
      present: await readNotifyRules(tx, owner),
      personal: ownerOfSchedule(stored).userUid,
    };
    const faults = await checkNotifyRules(tx, wanted.notify, rules);
    if (faults.length > 0 && (checked.kind === 'ok' || checked.kind === 'invalid')) return withFaults(checked, faults);
    if (checked.kind !== 'ok') return checked;
    await setNotifyRules(tx, owner, wanted.notify);
    const row = await updateSchedule(
      tx,
      stored,
      by,
      checked.wanted,
      wanted.enabled ?? stored.enabled,
      named ?? present,
    );
    return { kind: 'changed', row };
  });
}

/** Deletes a schedule. Returns false if there is no such schedule that the caller may delete. */
export async function removeSchedule(db: Database, by: Principal, id: string): Promise<boolean> {
  if (!isUuid(id)) return false;
  return await db.transaction(async (tx) => {
    const stored = await lockSchedule(tx, by, id, 'delete');
    if (stored) await deleteSchedule(tx, stored, by);
    return Boolean(stored);
  });
}

/** Pauses a schedule, or resumes it. Returns null if there is no such schedule that the caller may change. */
export async function switchSchedule(
  db: Database,
  by: Principal,
  id: string,
  enabled: boolean,
): Promise<ScheduleRow | null> {
  if (!isUuid(id)) return null;
  return await db.transaction(async (tx) => {
    const stored = await lockSchedule(tx, by, id, 'change');
    return stored ? await setScheduleEnabled(tx, stored, by, enabled) : null;
  });
}
