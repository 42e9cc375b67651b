/** Stores whom schedules, automations and budgets notify, and checks the names in their rules. */
import type { NotifyRule } from '@runyard/contract/runs/notify';
import { isAtLeast, type Role } from '@runyard/contract/wire/access';
import type { Fault } from '../../platform/fault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, json, nullable, text, uuid } from '../../platform/store/database/statement.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import type { RunActor } from '../../team/access/actor.ts';
import { findSubscriptions } from '../subscriptions/named.ts';

/** The owner of rules: a schedule, an automation, or (without both ids) the budget of the team. */
export interface RulesOwner {
  readonly teamId: string;
  readonly scheduleId?: string;
  readonly automationUid?: string;
}

const keyOf = ({ teamId, scheduleId, automationUid }: RulesOwner) => [
  teamId,
  scheduleId ?? null,
  automationUid ?? null,
];

/** SQL: the rules `n` belong to the owner: team $1, schedule $2 and automation $3. */
export const ofOwner = `n.team_id = $1 AND (n.schedule_id = $2::uuid OR n.automation_uid = $3::text
  OR ($2 IS NULL AND $3 IS NULL AND n.schedule_id IS NULL AND n.automation_uid IS NULL))`;

const readRules = defineStatement({
  name: 'read_notify_rules',
  text: `SELECT n.rules FROM notify_rules n WHERE ${ofOwner}`,
  row: { rules: json<NotifyRule[]>() },
});

/** Returns the rules of an owner. */
export const readNotifyRules = async (db: Queryable, owner: RulesOwner): Promise<NotifyRule[]> =>
  (await db.query(readRules, keyOf(owner)))[0]?.rules ?? [];

const readRulesOf = defineStatement({
  name: 'read_notify_rules_of_owners',
  text: `
    SELECT schedule_id, automation_uid, rules FROM notify_rules WHERE team_id = $1
      AND (schedule_id = ANY($2::uuid[]) OR automation_uid = ANY($3::text[]))`,
  row: { schedule_id: nullable(uuid), automation_uid: nullable(text()), rules: json<NotifyRule[]>() },
});

/** Returns the rules of schedules and automations of a team, by the ids of these owners. Owners without rules are absent. */
export async function readRulesOfOwners(
  db: Queryable,
  teamId: string,
  { scheduleIds = [], automationUids = [] }: { scheduleIds?: readonly string[]; automationUids?: readonly string[] },
): Promise<ReadonlyMap<string, NotifyRule[]>> {
  if (scheduleIds.length + automationUids.length === 0) return new Map();
  const rows = await db.query(readRulesOf, [teamId, scheduleIds, automationUids]);
  return new Map(rows.map((row) => [row.schedule_id ?? row.automation_uid ?? '', row.rules]));
}

const remove = defineStatement({
  name: 'delete_notify_rules',
  text: `DELETE FROM notify_rules n WHERE ${ofOwner}`,
  row: {},
});

/** The caller has locked the owner, or its row serialises the changes. The new row has the default of `is_told`. */
const insert = defineStatement({
  name: 'insert_notify_rules',
  text: 'INSERT INTO notify_rules (team_id, schedule_id, automation_uid, rules) VALUES ($1, $2, $3, $4)',
  row: {},
});

/** Replaces the rules of an owner. Undefined: the rules do not change. The caller has locked the owner and checked the rules. */
export async function setNotifyRules(
  tx: Queryable,
  owner: RulesOwner,
  rules: readonly NotifyRule[] | undefined,
): Promise<void> {
  if (rules === undefined) return;
  await tx.query(remove, keyOf(owner));
  if (rules.length > 0) await tx.query(insert, [...keyOf(owner), JSON.stringify(rules)]);
}

const readMembers = defineStatement({
  name: 'find_members_to_notify',
  text: `
    SELECT u.uid, m.role FROM team_members m JOIN users u ON u.id = m.user_id WHERE m.team_id = $1 AND u.uid = ANY($2::text[])`,
  row: { uid: text(), role: text<Role>() },
});

/** The caller who sets the rules, and the present rules. */
interface CheckedRules {
  readonly by: { readonly teamId: string; readonly creator: RunActor };
  readonly present: readonly NotifyRule[];
  /** The person of a personal schedule. Only this person may be notified, because nobody else sees the schedule. */
  readonly personal?: string | undefined;
}

/**
 * Checks the names in rules. A person must be a member of the team, and a subscription must belong to the team. Only administrators see
 * subscriptions, so only they may add one to rules. Names that the present rules have are accepted, so that a client can send them back.
 */
export async function checkNotifyRules(
  db: Queryable,
  rules: readonly NotifyRule[] | undefined,
  { by, present, personal }: CheckedRules,
): Promise<Fault[]> {
  if (rules === undefined || rules.length === 0) return [];
  const kept = new Set(present.flatMap(({ to }) => to));
  const named = [...new Set(rules.flatMap(({ to }) => to))].filter((each) => !kept.has(each));
  const [subscriptions, people] = [named.filter(isUuid), named.filter((each) => !isUuid(each))];
  const found = await db.query(readMembers, [by.teamId, [...people, by.creator.uid]]);
  const members = new Map(found.map(({ uid, role }) => [uid, role]));
  const role = by.creator.kind === 'user' ? members.get(by.creator.uid) : undefined;
  const mayNameSubscriptions = role !== undefined && isAtLeast(role, 'admin');
  const known = mayNameSubscriptions ? await findSubscriptions(db, by.teamId, subscriptions) : new Set<string>();
  const faultOf = (each: string): string | undefined => {
    if (personal !== undefined && each !== personal) return 'a personal schedule notifies only its person';
    if (kept.has(each)) return undefined;
    if (!isUuid(each)) return members.has(each) ? undefined : `no member of the team has the UID ${each}`;
    if (!mayNameSubscriptions) return 'only administrators may name event subscriptions';
    return known.has(each.toLowerCase()) ? undefined : `the team has no event subscription ${each}`;
  };
  return rules.flatMap(({ to }, index) =>
    to.flatMap((each, at) => {
      const message = faultOf(each);
      return message === undefined ? [] : [{ path: `notify.${index}.to.${at}`, message }];
    }),
  );
}
