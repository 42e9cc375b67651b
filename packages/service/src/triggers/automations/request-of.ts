/** Makes the request that creates a run of an automation, without the event that starts the run. */

import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { RunAgentRequest } from '@runyard/contract/runs/run-request';
import type { AgentOfRun } from '../factories/agents.ts';
import { configOfFactoryRun } from '../factories/run-config.ts';
import type { AutomationRow } from './automation-row.ts';

/** The members of an automation from which the request is made. */
type RequestMembers = Pick<AutomationRow, 'name' | 'prompt' | 'config'>;

/**
 * Returns the configuration of the runs of an automation: the configuration of the agent, in which members of the automation's
 * configuration replace the same members of the agent's.
 */
function configOf({ name, config }: RequestMembers, agent: AgentOfRun): AmbientAgentConfig {
  // No request sets these tools. They are read from the revision of the automation that the run executes.
  const { github_tools: _, ...overrides } = config ?? {};
  return { ...configOfFactoryRun({ ...agent, overrides }), name: overrides.name ?? name };
}

/** Returns the request for a run of an automation, without the event that starts the run. */
export const requestOfAutomation = (automation: RequestMembers, agent: AgentOfRun): RunAgentRequest => ({
  title: automation.name,
  prompt: automation.prompt,
  config: configOf(automation, agent),
});

/** Returns the message for an automation whose agent does not exist. */
export const missingAgent = (name: string): string =>
  `the factory has no agent ${JSON.stringify(name)}. GET /factory/{uid} lists its agents`;
