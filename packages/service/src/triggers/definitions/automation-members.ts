/** The members of an automation that definition files can set, in the form in which they are stored. */
import { type AutomationTrigger, CreateAutomationRequest } from '@runyard/contract/automations/automations';
import { pathOf } from '@runyard/contract/factories/files/layout';
import type { NotifyRule } from '@runyard/contract/runs/notify';
import { plainMessage } from '@runyard/contract/wire/plain-message';
import type { DefinedAutomation, FactoryDefinition } from '@runyard/definitions/definition';
import { withUids } from '@runyard/definitions/with-uids';
import type { AutomationRow } from '../automations/automation-row.ts';
import { toConfig } from './configs.ts';
import type { FaultList } from './fault-list.ts';

/** An automation with its rules for notifications; absent: it has no rules. */
export type AutomationWithRules = AutomationRow & { readonly notify?: readonly NotifyRule[] };

/**
 * Returns the members that the files define for an automation. The configuration has only members that override members of the agent.
 */
export function toAutomationMembers(
  definition: FactoryDefinition,
  automation: DefinedAutomation,
): CreateAutomationRequest {
  const { githubTools } = automation;
  const config = {
    ...toConfig(automation, definition),
    ...(githubTools === undefined ? {} : { github_tools: githubTools }),
  };
  return {
    name: automation.name,
    prompt: automation.prompt,
    enabled: automation.enabled,
    triggers: automation.triggers.map((trigger): AutomationTrigger => ({ ...trigger }) as AutomationTrigger),
    ...(automation.agent === undefined ? {} : { agent: automation.agent }),
    ...(Object.keys(config).length > 0 ? { config } : {}),
    overlap: automation.overlap ?? 'allow',
    ...(automation.concurrencyKey === undefined ? {} : { concurrency_key: automation.concurrencyKey }),
    ...(automation.notify?.length ? { notify: automation.notify } : {}),
  };
}

/** Returns the same members of a stored automation. */
export const toStoredMembers = (row: AutomationWithRules) => ({
  name: row.name,
  prompt: row.prompt,
  enabled: row.enabled,
  agent: row.agent ?? undefined,
  triggers: row.triggers,
  config: row.config ?? undefined,
  overlap: row.overlap,
  concurrency_key: row.concurrency_key ?? undefined,
  notify: row.notify,
});

/** Stands for the UID of a webhook that does not exist yet. */
const unknownUid = 'x'.repeat(22);

/** Adds a fault for each automation whose members the API would refuse. Webhooks may be named by their files. */
export function checkAutomations(named: FactoryDefinition, faults: FaultList): void {
  const webhooks = Object.fromEntries(named.webhooks.map(({ name }) => [name, unknownUid]));
  const definition = withUids(named, { webhooks, environments: {} });
  for (const automation of definition.automations) {
    const checked = CreateAutomationRequest.safeParse(toAutomationMembers(definition, automation), {
      error: plainMessage,
    });
    for (const { path, message } of checked.error?.issues ?? []) {
      const [member, ...rest] = path.map((part) => (typeof part === 'symbol' ? '' : part));
      const at = member === 'concurrency_key' ? ['concurrencyKey'] : [member ?? '', ...rest];
      faults.add(pathOf.automation(automation.name), at, message);
    }
  }
}
