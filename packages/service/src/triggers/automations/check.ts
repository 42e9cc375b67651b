import type { CreateAutomationRequest } from '@runyard/contract/automations/automations';
import { createRedactor } from '@runyard/system/redaction/redactor';
import type { Fault } from '../../platform/fault.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import type { RequestOutcome } from '../../runs/runs/submit/request.ts';
import type { Models } from '../../team/models/models.ts';
import { type AgentOfRun, readAgentOfRun } from '../factories/agents.ts';
import { type CheckedActors, checkRunOf, faultOfOverlap } from '../schedules/check.ts';
import { listWebhooks } from '../webhooks/webhooks.ts';
import { type AutomationRow, webhooksOf } from './automation-row.ts';
import { missingAgent, requestOfAutomation } from './request-of.ts';
import { faultsOfScheduleIds } from './schedule-ids.ts';

export interface CheckDeps {
  readonly models: Models;
  readonly vault: Vault;
  /**
   * True: the automation is accepted even if this service does not have its model or platform, or the team its schedules. Set for
   * automations of definition files.
   */
  readonly keepsLacking?: boolean;
}

/** The members of an automation as they will be stored. */
export type WantedAutomation = Pick<
  AutomationRow,
  'name' | 'prompt' | 'enabled' | 'agent' | 'triggers' | 'config' | 'overlap' | 'concurrency_key'
>;

/** Outcome of the check. The failures are those of creating a run. */
export type CheckOutcome =
  | { readonly kind: 'ok'; readonly wanted: WantedAutomation }
  | Exclude<RequestOutcome, { kind: 'ok' }>;

/**
 * Returns the agent with which a request is checked; null if the factory has no agent with this name. If the stored automation already
 * names this agent and the agent was deleted, returns the foreman. So a client can change other members of the automation and keep the
 * name of the deleted agent.
 */
async function agentOf(
  tx: Queryable,
  factory: { readonly teamId: string; readonly factoryUid: string },
  name: string | undefined,
  stored: AutomationRow | undefined,
): Promise<AgentOfRun | null> {
  const found = await readAgentOfRun(tx, factory, name);
  return found ?? (name === stored?.agent ? await readAgentOfRun(tx, factory) : null);
}

/**
 * Checks that the agent and the webhooks belong to the factory, and that a run of the automation could be created now. Accepts
 * a deleted agent, deleted webhooks and deleted schedules if `stored` already names them.
 */
export async function checkAutomation(
  { models, vault, keepsLacking }: CheckDeps,
  tx: Queryable,
  actors: CheckedActors,
  factoryUid: string,
  request: Omit<CreateAutomationRequest, 'executor_uid'>,
  stored?: AutomationRow,
): Promise<CheckOutcome> {
  const faults: Fault[] = [];
  const webhooks = await listWebhooks(tx, actors.teamId, factoryUid);
  const known = new Set([...webhooks.map(({ uid }) => uid), ...(stored?.triggers ?? []).flatMap(webhooksOf)]);
  for (const [index, trigger] of request.triggers.entries()) {
    const unknown = webhooksOf(trigger).filter((uid) => !known.has(uid));
    for (const uid of unknown)
      faults.push({
        path: `triggers.${index}.filter.webhook_ids`,
        message: `the factory has no webhook ${uid}. List them with GET /factory/${factoryUid}/webhooks`,
      });
  }
  const keepsUnknown = keepsLacking === true;
  faults.push(...(await faultsOfScheduleIds(tx, actors.teamId, request.triggers, { stored, keepsUnknown })));
  const wanted: WantedAutomation = {
    name: request.name,
    prompt: request.prompt,
    enabled: request.enabled,
    agent: request.agent ?? null,
    triggers: request.triggers,
    config: request.config ?? null,
    overlap: request.overlap,
    concurrency_key: request.concurrency_key ?? null,
  };
  const agent = await agentOf(tx, { teamId: actors.teamId, factoryUid }, request.agent, stored);
  if (!agent) {
    faults.push({ path: 'agent', message: missingAgent(request.agent ?? 'foreman') });
    return { kind: 'invalid', faults };
  }
  const runRequest = requestOfAutomation(wanted, agent);
  const overlap = faultOfOverlap(wanted.overlap, runRequest.config ?? {});
  if (overlap) faults.push(overlap);
  const run = await checkRunOf({ db: tx, models, vault }, actors, runRequest, 'WEBHOOK', { keepsLacking });
  if (run.kind !== 'ok' && run.kind !== 'invalid') return run;
  if (run.kind === 'invalid') faults.push(...run.faults);
  if (faults.length > 0 || run.kind === 'invalid') return { kind: 'invalid', faults };
  // Redact the values of secrets, because a person may have pasted a value instead of the name of the secret.
  const { name, prompt, config, triggers } = wanted;
  const redacted = createRedactor(run.values).value({ name, prompt, config, triggers }) as Partial<WantedAutomation>;
  return { kind: 'ok', wanted: { ...wanted, ...redacted } };
}
