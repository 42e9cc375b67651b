import type { CreateAutomationRequest } from '@runyard/contract/automations';
import type { AmbientAgentConfig } from '@runyard/contract/config';
import { createRedactor } from '@runyard/contract/redaction/redactor';
import type { RunActor } from '../access/actor.ts';
import type { Fault } from '../fault.ts';
import type { Models } from '../models/models.ts';
import { checkRunRequest, type RequestOutcome } from '../runs/submit/request.ts';
import { faultOfOverlap } from '../schedules/check.ts';
import type { Vault } from '../secrets/vault.ts';
import type { Queryable } from '../store/database/database.ts';
import { listWebhooks } from '../webhooks/webhooks.ts';
import { type AutomationRow, webhooksOf } from './automation-row.ts';
import { requestOf } from './run-request.ts';

export interface CheckDeps {
  readonly models: Models;
  readonly vault: Vault;
}

/** The factory of an automation, and the configuration that its runs begin from. */
export interface FactoryOfAutomation {
  readonly uid: string;
  readonly agent_defaults?: AmbientAgentConfig | undefined;
}

/** An automation as it shall be stored. */
export type WantedAutomation = Pick<
  AutomationRow,
  'name' | 'prompt' | 'enabled' | 'triggers' | 'config' | 'overlap' | 'concurrency_key'
>;

/** Outcome of the check, each with the HTTP status that it becomes. */
export type CheckOutcome =
  | { readonly kind: 'ok'; readonly wanted: WantedAutomation }
  | Exclude<RequestOutcome, { kind: 'ok' }>;

/**
 * Checks that the triggers select webhooks of the factory, and that the caller could create a run of the automation now. Webhooks that
 * `stored` selects already may be deleted by now.
 */
export async function checkAutomation(
  { models, vault }: CheckDeps,
  tx: Queryable,
  actor: { readonly teamId: string; readonly creator: RunActor },
  factory: FactoryOfAutomation,
  request: CreateAutomationRequest,
  stored?: AutomationRow,
): Promise<CheckOutcome> {
  const faults: Fault[] = [];
  const webhooks = await listWebhooks(tx, actor.teamId, factory.uid);
  const known = new Set([...webhooks.map(({ uid }) => uid), ...(stored?.triggers ?? []).flatMap(webhooksOf)]);
  for (const [index, trigger] of request.triggers.entries()) {
    if (trigger.provider === 'schedule')
      faults.push({
        path: `triggers.${index}.provider`,
        message: 'schedule is not available in automations; create a schedule with POST /agent/schedules',
      });
    const unknown = webhooksOf(trigger).filter((uid) => !known.has(uid));
    for (const uid of unknown)
      faults.push({
        path: `triggers.${index}.filter.webhook_ids`,
        message: `the factory has no webhook ${uid}. List them with GET /factory/${factory.uid}/webhooks`,
      });
  }
  const wanted: WantedAutomation = {
    name: request.name,
    prompt: request.prompt,
    enabled: request.enabled,
    triggers: request.triggers,
    config: request.config ?? null,
    overlap: request.overlap,
    concurrency_key: request.concurrency_key ?? null,
  };
  const runRequest = requestOf(wanted, factory.agent_defaults ?? {});
  const overlap = faultOfOverlap(wanted.overlap, runRequest.config ?? {});
  if (overlap) faults.push(overlap);
  const run = await checkRunRequest({ db: tx, models, vault }, actor, runRequest, 'WEBHOOK');
  if (run.kind !== 'ok' && run.kind !== 'invalid') return run;
  if (run.kind === 'invalid') faults.push(...run.faults);
  if (faults.length > 0 || run.kind === 'invalid') return { kind: 'invalid', faults };
  // A person who names a secret may also paste its value.
  const { name, prompt, config, triggers } = wanted;
  const told = createRedactor(run.values).value({ name, prompt, config, triggers }) as Partial<WantedAutomation>;
  return { kind: 'ok', wanted: { ...wanted, ...told } };
}
