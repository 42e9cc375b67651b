/** The request for the runs of an automation. */
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { RunAgentRequest } from '@runyard/contract/runs/run-request';
import type { AgentOfRun } from '../factories/agents.ts';
import { configOfFactoryRun } from '../factories/run-config.ts';
import type { AutomationRow } from './automation-row.ts';

/** Members of an automation that make the request for its runs. */
export type RequestMembers = Pick<AutomationRow, 'name' | 'prompt' | 'config'>;

/** Returns the configuration of the runs: that of the agent, with the members of the automation in place of its own. */
const configOf = ({ name, config }: RequestMembers, agent: AgentOfRun): AmbientAgentConfig => ({
  ...configOfFactoryRun({ ...agent, ...(config ? { overrides: config } : {}) }),
  name: config?.name ?? name,
});

/** Returns the request for a run of an automation, without the event that starts it. */
export const requestOf = (automation: RequestMembers, agent: AgentOfRun): RunAgentRequest => ({
  title: automation.name,
  prompt: automation.prompt,
  config: configOf(automation, agent),
});

/** Returns why an automation has no agent. */
export const missingAgent = (name: string): string =>
  `the factory has no agent ${JSON.stringify(name)}. GET /factory/{uid} lists its agents`;
