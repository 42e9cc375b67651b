/** The automations that webhooks feed. */
import type { SignatureSchemeName } from '@runyard/contract/webhooks/webhooks';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  json,
  nullable,
  type RowOf,
  texts,
} from '../../platform/store/database/statement.ts';
import { mayStartRunsOf } from '../../team/access/may-start-runs.ts';
import { type AgentOfRun, agentOfRun } from '../factories/agents.ts';
import { selectsWebhook } from '../webhooks/ingest/insert-deliveries.ts';
import { automationColumns, automationRow } from './automation-row.ts';

/**
 * Prevents the deletion of the automations until the transaction ends. $3: whether GitHub sends to the webhook. Returns
 * each automation once, with all webhooks that feed it, because its row may be large.
 */
const readFed = defineStatement({
  name: 'read_automations_of_webhooks',
  text: `
    SELECT ${automationColumns}, fed.webhook_uids, ${mayStartRunsOf('a.team_id', 'a.editor_kind', 'a.editor_uid')} AS may_start,
      ${agentOfRun('a.team_id', 'a.factory_uid', 'a.agent')} AS agent_of_run
    FROM automations a CROSS JOIN LATERAL (
      SELECT array_agg(w.uid) AS webhook_uids FROM unnest($1::text[], $2::text[], $3::boolean[]) AS w (uid, factory_uid, is_github)
      WHERE w.factory_uid = a.factory_uid AND ${selectsWebhook('w.uid', 'w.is_github')}) fed
    WHERE a.factory_uid = ANY ($2) AND fed.webhook_uids IS NOT NULL
    ORDER BY a.uid FOR KEY SHARE OF a`,
  row: { ...automationRow, webhook_uids: texts, may_start: boolean, agent_of_run: nullable(json<AgentOfRun>()) },
});

/** An automation, the webhooks that feed it, whether its editor may start runs of the team, and the agent of its runs. */
export type FedAutomation = RowOf<typeof readFed>;

/** A webhook that feeds automations. */
export interface FeedingWebhook {
  readonly webhookUid: string;
  readonly factoryUid: string;
  readonly scheme: SignatureSchemeName | null;
}

/** Returns the automations with a trigger that selects one of the webhooks. */
export function readFedBy(tx: Queryable, feeding: readonly FeedingWebhook[]): Promise<FedAutomation[]> {
  const webhooks = [...new Map(feeding.map((each) => [each.webhookUid, each])).values()];
  return tx.query(readFed, [
    webhooks.map(({ webhookUid }) => webhookUid),
    webhooks.map(({ factoryUid }) => factoryUid),
    webhooks.map(({ scheme }) => scheme === 'github'),
  ]);
}
