import { expect, test } from 'vitest';
import { fakeAssignment } from '../../../../test/fakes/worker-service.ts';
import { agentLaunch } from './launch.ts';

const base = fakeAssignment('e1').data;

test('the command line of the agent has the arguments for the configuration of the run, and then the arguments of the assignment', () => {
  const result = agentLaunch(
    {
      ...base,
      task: {
        ...base.task,
        agent_config_snapshot: {
          model_id: 'm',
          skill_spec: 'o/r:s',
          harness: { type: 'oz' },
          computer_use_enabled: false,
          environment_id: 'A'.repeat(22),
        },
      },
      additional_oz_args: ['--new-flag', 'x'],
    },
    'http://service',
  );
  expect(result.ok && result.launch.args.join(' ')).toBe(
    `agent run --task-id task-of-e1 --sandboxed --server-root-url http://service --model m --skill o/r:s --no-computer-use --harness oz --environment ${'A'.repeat(22)} --idle-on-complete 0s --new-flag x`,
  );
});

test("an additional argument of the assignment replaces the worker's argument with the same flag", () => {
  const result = agentLaunch({ ...base, additional_oz_args: ['--idle-on-complete', '10m'] }, 'http://service');
  expect(result.ok && result.launch.args.join(' ')).toMatch(
    /--server-root-url http:\/\/service --idle-on-complete 10m$/,
  );
});

test('the command line of the agent does not contain MCP servers, because their headers may be secrets', () => {
  const mcp_servers = { s: { url: 'https://x', headers: { authorization: 'Bearer hidden' } } };
  const result = agentLaunch(
    { ...base, task: { ...base.task, agent_config_snapshot: { mcp_servers } } },
    'http://service',
  );
  expect(JSON.stringify(result)).not.toContain('hidden');
});

test('the environment of the agent has the variables of the assignment and of the worker protocol, but not the run token', () => {
  const result = agentLaunch({ ...base, env_vars: { RUNYARD_RUN_TOKEN: 't', TASK_ID: 'forged' } }, 'http://service');
  expect(result.ok && result.launch.env).toEqual({ TASK_ID: 'task-of-e1', WARP_SERVER_ROOT_URL: 'http://service' });
  expect(result.ok && result.launch.runToken).toBe('t');
});

test.each([[{ 'A B': 'x' }], [{ '': 'x' }], [{ A: 'x\0y' }]])(
  'an assignment with the environment variables %j is refused',
  (env_vars) => {
    expect(agentLaunch({ ...base, env_vars }, 'http://service').ok).toBe(false);
  },
);

test('an assignment with a NUL character in an argument is refused', () => {
  expect(agentLaunch({ ...base, additional_oz_args: ['a\0--bind'] }, 'http://service').ok).toBe(false);
});
