/** Builds the parts of a state change that create and resolve notifications, so a change and its notifications are atomic. */
import { maxCountedNotifications } from '@runyard/contract/limits';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement } from '../../platform/store/database/statement.ts';
import { isSuspended } from '../../team/access/keys/key.ts';
import { enqueueNotifications, tellSubscribers } from '../subscriptions/enqueue.ts';

/** Columns of `runs` that `notify` reads. */
export const notifiedColumns = [
  'id',
  'team_id',
  'conversation_id',
  'parent_run_id',
  'executor_kind',
  'executor_uid',
  'creator_kind',
  'creator_uid',
  'schedule_id',
  'metadata',
  'artifact_types',
  'open_request',
  'state',
  'error_code',
] as const;

/** SQL: the kind of the notification about a question of the run `r`. */
const kindOfQuestion = `CASE WHEN r.open_request->>'kind' = 'permission' THEN 'blocked'
  WHEN jsonb_array_length(r.open_request->'options') > 0 THEN 'answer_question' ELSE 'question' END`;

/** SQL: the kind of the notification about a run without a parent that failed. The parent of a child run reads the failure of the child. */
const kindOfFailure = "CASE WHEN r.parent_run_id IS NULL THEN 'failed' END";

/** SQL: the kind of the review of a turn that has ended. `isPlan`: SQL condition that the turn made a plan. */
const kindOfReview = (isPlan: string): string => `CASE
  WHEN EXISTS (SELECT FROM factory_tasks t WHERE t.conversation_id = r.conversation_id AND t.stage = 'SPEC') THEN 'spec_review'
  WHEN 'PULL_REQUEST' = ANY(r.artifact_types) THEN 'pr_review'
  WHEN 'PLAN' = ANY(r.artifact_types) AND ${isPlan} THEN 'spec_review' END`;

/** SQL: the rule `e.rule` is about this failure of the run `r`. */
const isAboutFailure = `r.parent_run_id IS NULL AND (e.rule->>'on' = 'failed'
  OR (e.rule->>'on' = 'budget' AND r.error_code IN ('budget_exceeded', 'insufficient_credits')))`;

/** SQL: the run `r` executes the automation with the UID. Metadata alone is no proof, because callers choose it. */
const isOfAutomation = (uid: string): string => `EXISTS (SELECT FROM run_requests q WHERE q.run_id = r.id
  AND q.contents @> jsonb_build_array(jsonb_build_object('kind', 'automation', 'uid', ${uid})))`;

/** SQL: the names in the rules of the schedule or the automation of the run. `isWanted`: SQL condition for a rule `e.rule`. */
const targets = (relation: string, isWanted: string): string => `
        SELECT DISTINCT r.id, t.name, e.rule->>'on' AS reason FROM ${relation} r CROSS JOIN LATERAL (
          SELECT n.rules FROM notify_rules n WHERE n.schedule_id = r.schedule_id
          UNION ALL
          SELECT n.rules FROM notify_rules n
          WHERE n.automation_uid = r.metadata->>'automation_id' AND n.team_id = r.team_id AND ${isOfAutomation('n.automation_uid')}
        ) n CROSS JOIN jsonb_array_elements(n.rules) e(rule) CROSS JOIN jsonb_array_elements_text(e.rule->'to') t(name)
        WHERE ${isWanted}`;

/** The recipients of a change. */
interface Asked {
  /** SQL condition for rules `e.rule` whose people and subscriptions are notified; undefined: rules do not count. */
  readonly rules?: string;
  /** True: somebody must answer. If nobody else is asked, the administrators are asked. */
  readonly needsAnswer: boolean;
}

/**
 * SQL: the people of the team who are asked about the run `r`: the executor and the people whom rules name. If none of them is a member of
 * the team, the person who started the run is asked. If this person is not a member either, the administrators get the questions. A suspended
 * person cannot answer and is not asked.
 */
const people = ({ rules, needsAnswer }: Asked): string => `(
  SELECT DISTINCT uid FROM (
    SELECT u.uid, w.place, min(w.place) OVER () AS first
    FROM (
      SELECT 1 AS place, r.executor_uid AS uid WHERE r.executor_kind = 'user'
      UNION ALL SELECT 2, r.creator_uid WHERE r.creator_kind = 'user'
      ${rules === undefined ? '' : 'UNION ALL SELECT 1, target.name FROM target WHERE target.id = r.id'}
      ${
        needsAnswer
          ? `UNION ALL SELECT 3, a.uid FROM team_members m JOIN users a ON a.id = m.user_id
        WHERE m.team_id = r.team_id AND m.role IN ('owner', 'admin')`
          : ''
      }
    ) w JOIN users u ON u.uid = w.uid
    JOIN team_members m ON m.user_id = u.id AND m.team_id = r.team_id${needsAnswer ? " AND m.role <> 'viewer'" : ''} AND NOT ${isSuspended('u.id')}
  ) w WHERE place = first)`;

/** SQL: the person `uid` already has as many notifications as a count counts. */
const isFull = `(
  SELECT count(*) FROM (SELECT FROM inbox_recipients c WHERE c.user_uid = p.uid AND c.team_id = r.team_id AND c.dismissed_at IS NULL
    LIMIT ${maxCountedNotifications}) c) >= ${maxCountedNotifications}`;

/** SQL: the event for a subscription that a rule names. It has no texts, because others wrote them. */
const dataOfRun = `jsonb_strip_nulls(jsonb_build_object('on', target.reason, 'run_id', r.id, 'state', r.state, 'error_code', r.error_code,
          'conversation_id', r.conversation_id, 'schedule_id', r.schedule_id, 'automation_id', r.metadata->>'automation_id'))`;

/**
 * Returns common table expressions, `, name AS (…)`, that create a notification for each run of `relation`, which has `notifiedColumns`.
 * `kind`: SQL of its kind for the run `r`; NULL: the run gets no notification. A run without recipients gets no notification either.
 */
const notify = (relation: string, kind: string, asked: Asked): string => `${
  asked.rules === undefined
    ? ''
    : `, target AS MATERIALIZED (${targets(relation, asked.rules)}
      ), notified AS (${enqueueNotifications(`(
        SELECT r.team_id, target.name AS target, ${dataOfRun} AS data FROM target JOIN ${relation} r ON r.id = target.id)`)}
      )`
}, asked AS MATERIALIZED (
        SELECT r.id, r.team_id, r.metadata->>'factory_uid' AS factory_uid, k.kind, p.uid
        FROM ${relation} r CROSS JOIN LATERAL (SELECT ${kind} AS kind) k CROSS JOIN LATERAL ${people(asked)} p
        WHERE k.kind IS NOT NULL${asked.needsAnswer ? '' : ` AND NOT (k.kind = 'failed' AND ${isFull})`}
      ), item AS (
        INSERT INTO inbox_items (team_id, kind, run_id, factory_uid)
        SELECT DISTINCT team_id, kind, id, left(factory_uid, 100) FROM asked RETURNING uid, run_id
      ), recipient AS (
        INSERT INTO inbox_recipients (item_uid, user_uid, team_id)
        SELECT item.uid, asked.uid, asked.team_id FROM item JOIN asked ON asked.id = item.run_id
      )`;

/** Returns the part of a change to BLOCKED that asks people. */
export const notifyOfQuestion = (relation: string): string =>
  notify(relation, kindOfQuestion, { rules: "e.rule->>'on' = 'needs_answer'", needsAnswer: true });

/** Returns the part of a change to FAILED or ERROR that notifies people, and stores that the failures of the run's owner must be counted. */
export const notifyOfFailure = (relation: string): string =>
  `${notify(relation, kindOfFailure, { rules: isAboutFailure, needsAnswer: false })}, uncounted AS (
        INSERT INTO uncounted_failures (run_id) SELECT r.id FROM ${relation} r
        WHERE r.parent_run_id IS NULL AND (r.schedule_id IS NOT NULL OR r.metadata ? 'automation_id') ON CONFLICT DO NOTHING
      )`;

/**
 * Returns the part of a change to SUCCEEDED that asks people to review what the turn made, and resolves what the earlier failures of the
 * run's owner caused. `isPlan`: SQL condition for the run `r`.
 */
export const notifyOfReview = (relation: string, isPlan: string): string =>
  `${notify(relation, kindOfReview(isPlan), { needsAnswer: false })}, over AS (
        DELETE FROM inbox_items i USING ${relation} r WHERE i.kind = 'failed_times' AND i.team_id = r.team_id AND r.parent_run_id IS NULL
          AND (i.schedule_id = r.schedule_id OR (i.automation_uid = r.metadata->>'automation_id' AND ${isOfAutomation('i.automation_uid')}))
      )`;

/** Returns the part of a state change that resolves the notifications of the runs of `relation`. */
export const resolveNotifications = (relation: string): string => `, resolved AS (
        DELETE FROM inbox_items USING ${relation} WHERE inbox_items.run_id = ${relation}.id
      )`;

const notifyOfUnrepeated = defineStatement({
  name: 'notify_of_unrepeated_failure',
  text: `
    WITH failed AS (
      SELECT ${notifiedColumns.join(', ')} FROM runs WHERE id = $1 AND state IN ('FAILED', 'ERROR')
    )${notifyOfFailure('failed')}
    SELECT ${tellSubscribers('notified')}`,
  row: {},
});

/** Notifies people of a failed run whose planned retry was given up, in the transaction that gives it up. */
export async function notifyOfUnrepeatedFailure(tx: Queryable, runId: string): Promise<void> {
  await tx.query(notifyOfUnrepeated, [runId]);
}
