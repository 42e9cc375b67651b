import type { Automation } from '@runyard/contract/automations';
import { isAvailableProvider } from '@runyard/contract/factory-files/schemas/triggers';
import { mayStartRuns } from '../access/may-start-runs.ts';
import { readProfiles } from '../access/profiles.ts';
import type { Queryable } from '../store/database/database.ts';
import { listWebhooks, type StoredWebhook } from '../webhooks/webhooks.ts';
import { type AutomationRow, editorOf, webhooksOf } from './automation-row.ts';

/** Returns why triggers of an automation do not fire. `webhooks`: those of its factory. */
function problemsOfTriggers({ triggers }: AutomationRow, webhooks: readonly StoredWebhook[]): string[] {
  return triggers.flatMap((trigger, index) => {
    const at = `triggers[${index}]`;
    if (!isAvailableProvider(trigger.provider)) return [`${at}: this service has no provider ${trigger.provider}`];
    if (trigger.provider === 'github' && !webhooks.some(({ signature_scheme: scheme }) => scheme === 'github'))
      return [`${at}: the factory has no webhook with the signature scheme github`];
    return webhooksOf(trigger).flatMap((uid) => {
      const webhook = webhooks.find((each) => each.uid === uid);
      if (!webhook) return [`${at}: the webhook ${uid} was deleted`];
      return webhook.enabled ? [] : [`${at}: the webhook ${uid} is disabled`];
    });
  });
}

/** Returns the automations of one factory as the API shows them, in their order. */
export async function toItems(
  db: Queryable,
  { teamId, factoryUid }: { readonly teamId: string; readonly factoryUid: string },
  rows: readonly AutomationRow[],
): Promise<Automation[]> {
  const webhooks = await listWebhooks(db, teamId, factoryUid);
  const creatorOf = ({ creator_kind: kind, creator_uid: uid }: AutomationRow) => ({ kind, uid });
  const profileOf = await readProfiles(
    db,
    teamId,
    rows.flatMap((row) => [creatorOf(row), editorOf(row)]),
  );
  const mayStart = await mayStartRuns(
    db,
    rows.map((row) => ({ teamId, ...editorOf(row) })),
  );
  return rows.map((row) => {
    const problems = problemsOfTriggers(row, webhooks);
    if (!mayStart({ teamId, ...editorOf(row) })) problems.unshift(editorMayNot);
    return {
      uid: row.uid,
      name: row.name,
      prompt: row.prompt,
      enabled: row.enabled,
      triggers: row.triggers,
      ...(row.config ? { config: row.config } : {}),
      overlap: row.overlap,
      ...(row.concurrency_key === null ? {} : { concurrency_key: row.concurrency_key }),
      ...(problems.length > 0 ? { problems } : {}),
      created_at: row.created_at,
      updated_at: row.updated_at,
      created_by: profileOf(creatorOf(row)),
      updated_by: profileOf(editorOf(row)),
    };
  });
}

/** Why an automation starts nothing after its editor has left the team or become a viewer. */
export const editorMayNot =
  'the one who last edited the automation may not start runs of the team any more; have somebody else save it';
