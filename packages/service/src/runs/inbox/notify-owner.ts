/** Notifies people and subscriptions of what concerns a whole schedule or automation, or the budget of a team. */
import type { NotifyEvent } from '@runyard/contract/runs/notify';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, type Statement } from '../../platform/store/database/statement.ts';
import { enqueueNotifications, tellSubscribers } from '../subscriptions/enqueue.ts';
import { maxDescription } from './rows.ts';
import { ofOwner, type RulesOwner } from './rules.ts';

/**
 * Parameters: team, schedule, automation; event; number of runs, for `failed_times`; title, description and factory; a person whom no
 * rule names; whether this person is notified even if the owner has rules; data of the event for subscriptions.
 *
 * One notification of a kind replaces the earlier one of the same owner, so their number is limited.
 */
const notify = defineStatement({
  name: 'notify_of_owner',
  text: `
    WITH rule AS (
      SELECT e.rule FROM notify_rules n CROSS JOIN jsonb_array_elements(n.rules) e(rule) WHERE ${ofOwner}
    ), target AS (
      SELECT DISTINCT t.name FROM rule CROSS JOIN jsonb_array_elements_text(rule->'to') t(name)
      WHERE rule->>'on' = $4 AND ($5::int IS NULL OR (rule->>'times')::int = $5)
      UNION SELECT $9::text WHERE $9::text IS NOT NULL AND ($10::boolean OR NOT EXISTS (SELECT FROM rule))
    ), person AS (
      SELECT u.uid FROM target JOIN users u ON u.uid = target.name JOIN team_members m ON m.user_id = u.id AND m.team_id = $1
    ), earlier AS (
      DELETE FROM inbox_items i WHERE i.team_id = $1 AND i.kind = $4 AND EXISTS (SELECT FROM person)
        AND (i.schedule_id = $2 OR i.automation_uid = $3 OR ($2 IS NULL AND $3 IS NULL AND i.kind = 'budget'))
    ), item AS (
      INSERT INTO inbox_items (team_id, kind, factory_uid, schedule_id, automation_uid, about)
      SELECT $1, $4, $8, $2, $3, jsonb_build_object('title', $6::text, 'description', $7::text) WHERE EXISTS (SELECT FROM person)
      RETURNING uid
    ), recipient AS (
      INSERT INTO inbox_recipients (item_uid, user_uid, team_id) SELECT item.uid, person.uid, $1 FROM item CROSS JOIN person
    ), notified AS (${enqueueNotifications('(SELECT $1::uuid AS team_id, name AS target, $11::jsonb AS data FROM target)')})
    SELECT ${tellSubscribers('notified')}`,
  row: {},
});

/** An event of an owner. */
export interface OwnerEvent {
  readonly on: Extract<NotifyEvent, 'failed_times' | 'missed' | 'budget'>;
  /** With `failed_times`: only rules with this number of runs; undefined: all rules. */
  readonly times?: number;
  readonly title: string;
  readonly description: string;
  readonly factoryUid?: string;
  /** A person who is notified if the owner has no rules, or `always`. */
  readonly person?: { readonly uid: string; readonly always: boolean } | undefined;
  /** Further members of the event for subscriptions. They have no texts. */
  readonly data?: Readonly<Record<string, unknown>>;
}

/** A statement with its values, which a transaction may also send together with COMMIT. */
export interface OwnerNotice {
  readonly statement: Statement;
  readonly values: readonly unknown[];
}

/** Returns the statement that notifies the people and subscriptions that the rules of the owner name for this event. */
export function noticeOfOwner(owner: RulesOwner, event: OwnerEvent): OwnerNotice {
  const data = {
    on: event.on,
    ...(owner.scheduleId === undefined ? {} : { schedule_id: owner.scheduleId }),
    ...(owner.automationUid === undefined ? {} : { automation_id: owner.automationUid }),
    ...event.data,
  };
  const values = [
    owner.teamId,
    owner.scheduleId ?? null,
    owner.automationUid ?? null,
    event.on,
    event.times ?? null,
    event.title,
    event.description.slice(0, maxDescription),
    event.factoryUid ?? null,
    event.person?.uid ?? null,
    event.person?.always ?? false,
    JSON.stringify(data),
  ];
  return { statement: notify, values };
}

/** Notifies of what concerns an owner, in the caller's transaction, which has locked the owner. */
export async function notifyOfOwner(tx: Queryable, owner: RulesOwner, event: OwnerEvent): Promise<void> {
  const { statement, values } = noticeOfOwner(owner, event);
  await tx.query(statement, values);
}
