import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { asObject } from '../acp/tool-output.ts';

/** The variable with the path of the file for the result. */
export const resultFileVariable = 'RUNYARD_RESULT_FILE';

/** Returns true if the run must return a result. */
export const returnsResult = (task: Pick<AgentTask, 'agent_config'>): boolean =>
  task.agent_config.output_schema !== undefined;

/** Name of the MCP server with the tools that belong to the run itself, such as `submit_result`. */
export const runServerName = 'runyard_run';

/** How a harness submits the result: with a tool, or only with the file. */
type Means = 'tool' | 'file';

const howTo: Readonly<Record<Means, string>> = {
  tool: `call the tool submit_result with {"result": VALUE}. If the call answers with faults, correct the value and call the tool again; the last accepted value counts. If you do not have this tool, write VALUE as JSON into the file that the environment variable ${resultFileVariable} names.`,
  file: `write VALUE as JSON into the file that the environment variable ${resultFileVariable} names.`,
};

/** Returns the text of the prompt about the result that the run must return; '' if it returns none. */
export function aboutResult(task: Pick<AgentTask, 'agent_config'>, means: Means): string {
  const schema = asObject(task.agent_config.output_schema);
  if (schema === undefined) return '';
  return `This run must return a result, which a program reads. Before you end, ${howTo[means]} VALUE must match this JSON Schema:\n\n${JSON.stringify(schema)}`;
}

/** Returns the message that sends the agent back to its work because its turn has no result. */
export const resultReminder = (problem: string): string =>
  `Runyard did not accept the end of your turn: this run must return a result. ${problem}\n\nSubmit a result that matches the schema, and end again. Do not repeat work that is done.`;
