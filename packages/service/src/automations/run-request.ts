/** The request for the runs of an automation. */
import type { AmbientAgentConfig } from '@runyard/contract/config';
import type { RunAgentRequest } from '@runyard/contract/run-request';
import type { AutomationRow } from './automation-row.ts';

/** Members of an automation that make the request for its runs. */
export type RequestMembers = Pick<AutomationRow, 'name' | 'prompt' | 'config'>;

/** Returns the configuration of the runs: the members of the automation, and those of the factory where it has none. */
function configOf({ name, config }: RequestMembers, defaults: AmbientAgentConfig): AmbientAgentConfig {
  const { skill_spec, skills, ...others } = defaults;
  const namesSkill = config?.skill_spec !== undefined || config?.skills !== undefined;
  return { name, ...(namesSkill ? others : defaults), ...config };
}

/** Returns the request for a run of an automation, without the event that starts it. */
export const requestOf = (automation: RequestMembers, defaults: AmbientAgentConfig): RunAgentRequest => ({
  title: automation.name,
  prompt: automation.prompt,
  config: configOf(automation, defaults),
});
