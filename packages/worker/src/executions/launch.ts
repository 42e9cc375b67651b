import type { TaskAssignment } from '@runyard/contract/workers/worker-protocol';
import type { AgentLaunch } from '../sandboxes/sandbox.ts';

/**
 * How to start the agent, or the reason if the assignment cannot be started. `variables`: names of the agent's variables from the
 * assignment, without the run token.
 */
export type LaunchResult =
  | { ok: true; launch: AgentLaunch; variables: readonly string[] }
  | { ok: false; problem: string };

/**
 * Texts with a NUL character are refused, because the NUL would end an option of the program that makes the sandbox, and the rest of the
 * text would be a further option.
 */
const hasNul = (text: string): boolean => text.includes('\0');

/**
 * Returns arguments and environment of the agent program as the worker protocol defines them: `agent run --task-id ID --sandboxed
 * --server-root-url URL …`. The protocol also has a flag for MCP servers. This flag is not used, because the headers and variables of MCP
 * servers may be secrets. The agent gets the MCP servers from the service together with the task.
 */
export function agentLaunch(assignment: TaskAssignment['data'], serviceRoot: string): LaunchResult {
  const config = assignment.task.agent_config_snapshot;
  const additional = assignment.additional_oz_args ?? [];
  const { RUNYARD_RUN_TOKEN: runToken = '', ...env } = assignment.env_vars ?? {};
  const args = ['agent', 'run', '--task-id', assignment.task_id, '--sandboxed', '--server-root-url', serviceRoot];
  const add = (flag: string, value: string | undefined): void => {
    if (value !== undefined && value !== '' && !additional.includes(flag)) args.push(flag, value);
  };
  add('--model', config.model_id);
  add('--skill', config.skill_spec);
  if (config.computer_use_enabled !== undefined) {
    args.push(config.computer_use_enabled ? '--computer-use' : '--no-computer-use');
  }
  add('--harness', config.harness?.type);
  add('--environment', config.environment_id);
  add('--idle-on-complete', '0s');
  args.push(...additional);

  if (args.some(hasNul)) return { ok: false, problem: 'an argument for the agent holds a NUL character' };
  const wrong = Object.entries(env).find(([name, value]) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || hasNul(value));
  if (wrong !== undefined) return { ok: false, problem: `the variable ${JSON.stringify(wrong[0])} cannot be set` };
  return {
    ok: true,
    variables: Object.keys(env),
    launch: { args, env: { ...env, TASK_ID: assignment.task_id, WARP_SERVER_ROOT_URL: serviceRoot }, runToken },
  };
}
