import type { CreateAutomationRequest } from '@runyard/contract/automations/automations';
import { createRedactor } from '@runyard/system/redaction/redactor';
import type { Fault } from '../../platform/fault.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { checkRunRequest, type RequestOutcome } from '../../runs/runs/submit/request.ts';
import type { RunActor } from '../../team/access/actor.ts';
import type { Models } from '../../team/models/models.ts';
import { type AgentOfRun, readAgentOfRun } from '../factories/agents.ts';
import { faultOfOverlap } from '../schedules/check.ts';
import { listWebhooks } from '../webhooks/webhooks.ts';
import { type AutomationRow, webhooksOf } from './automation-row.ts';
import { missingAgent, requestOf } from './request-for.ts';

export interface CheckDeps {
  readonly models: Models;
  readonly vault: Vault;
  /** True for automations of definition files, which are stored although this service lacks their model or platform. */
  readonly keepsLacking?: boolean;
}

/** An automation in the form in which it will be stored. */
export type WantedAutomation = Pick<
  AutomationRow,
  'name' | 'prompt' | 'enabled' | 'agent' | 'triggers' | 'config' | 'overlap' | 'concurrency_key'
>;

/** Outcome of the check, each with the HTTP status that it becomes. */
export type CheckOutcome =
  | { readonly kind: 'ok'; readonly wanted: WantedAutomation }
  | Exclude<RequestOutcome, { kind: 'ok' }>;

/**
 * Returns the agent for the check of a request; null if the factory has no agent with this name. If the agent was deleted
 * after the automation was stored, the name may stay, so that other members can be changed. The check then uses the
 * foreman.
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
 * Checks that the agent and the webhooks belong to the factory, and that the caller could create a run of the automation now.
 * Webhooks and an agent that `stored` already names may have been deleted since.
 */
export async function checkAutomation(
  { models, vault, keepsLacking }: CheckDeps,
  tx: Queryable,
  actor: { readonly teamId: string; readonly creator: RunActor },
  factoryUid: string,
  request: CreateAutomationRequest,
  stored?: AutomationRow,
): Promise<CheckOutcome> {
  const faults: Fault[] = [];
  const webhooks = await listWebhooks(tx, actor.teamId, factoryUid);
  const known = new Set([...webhooks.map(({ uid }) => uid), ...(stored?.triggers ?? []).flatMap(webhooksOf)]);
  for (const [index, trigger] of request.triggers.entries()) {
    const unknown = webhooksOf(trigger).filter((uid) => !known.has(uid));
    for (const uid of unknown)
      faults.push({
        path: `triggers.${index}.filter.webhook_ids`,
        message: `the factory has no webhook ${uid}. List them with GET /factory/${factoryUid}/webhooks`,
      });
  }
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
  const agent = await agentOf(tx, { teamId: actor.teamId, factoryUid }, request.agent, stored);
  if (!agent) {
    faults.push({ path: 'agent', message: missingAgent(request.agent ?? 'foreman') });
    return { kind: 'invalid', faults };
  }
  const runRequest = requestOf(wanted, agent);
  const overlap = faultOfOverlap(wanted.overlap, runRequest.config ?? {});
  if (overlap) faults.push(overlap);
  const run = await checkRunRequest({ db: tx, models, vault }, actor, runRequest, 'WEBHOOK', { keepsLacking });
  if (run.kind !== 'ok' && run.kind !== 'invalid') return run;
  if (run.kind === 'invalid') faults.push(...run.faults);
  if (faults.length > 0 || run.kind === 'invalid') return { kind: 'invalid', faults };
  // A person may paste the value of a secret instead of its name.
  const { name, prompt, config, triggers } = wanted;
  const redacted = createRedactor(run.values).value({ name, prompt, config, triggers }) as Partial<WantedAutomation>;
  return { kind: 'ok', wanted: { ...wanted, ...redacted } };
}
