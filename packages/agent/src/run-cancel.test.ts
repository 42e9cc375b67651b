import { describe, expect, test } from 'vitest';
import { eventually, isRunning } from '../test/agent.ts';
import { agent, fake, numbered, of, scripted, sh, start } from '../test/run.ts';

describe('a cancel', () => {
  /** No program in these tests ends by itself, so a test times out if the agent does not stop its program. */
  async function cancelled(stop: () => void = () => fake.cancel()): Promise<void> {
    stop();
    await agent.exited;
    numbered();
  }

  test('stops the running command and ends its action, and the agent reports the shutdown and exits with 0', async () => {
    await start(sh('echo begun; sleep 600'));
    await fake.until(() => of('action_output').length === 1);
    await cancelled();
    expect(await agent.exited).toBe(0);
    expect(of('action_result')).toEqual([expect.objectContaining({ state: 'failed' })]);
    expect(of('turn_finished')).toHaveLength(1);
    expect(fake.finished).toEqual([]);
    expect(fake.shutdowns).toEqual(['cancelled']);
  });

  test('stops a command that ignores SIGTERM, and all detached processes of the command', async () => {
    await start(sh('trap "" TERM\nsetsid sleep 600 & echo $!\nwhile true; do sleep 1; done'));
    await fake.until(() => of('action_output').length === 1);
    const pid = Number(of('action_output')[0]?.text);
    await cancelled();
    await eventually(() => !isRunning(pid));
    expect(fake.shutdowns).toEqual(['cancelled']);
  });

  test('ends a harness that ignores the cancel, and all detached processes of the harness', async () => {
    await start(scripted('ignores-cancel'));
    await fake.until(() => of('action').length === 1);
    const { pid } = of('action')[0]!.input as { pid: number };
    await cancelled();
    expect(await agent.exited).toBe(0);
    await eventually(() => !isRunning(pid));
    expect(of('action_result')).toEqual([expect.objectContaining({ state: 'failed' })]);
    expect(fake.shutdowns).toEqual(['cancelled']);
  });

  test('ends a setup command', async () => {
    await start({ ...sh('true'), environment: { uid: 'e', config: { setup_commands: ['sleep 600'] } } });
    await fake.until(() => of('setup_step_started').length === 1);
    await cancelled();
    expect(of('agent_started')).toEqual([]);
    expect(fake.shutdowns).toEqual(['cancelled']);
  });

  test('ends the agent even if the service accepts no reports', async () => {
    await start(sh('echo begun; sleep 600'));
    await fake.until(() => of('action_output').length === 1);
    fake.fault = ({ path }) => (path.endsWith('/inbox') ? undefined : { status: 503 });
    await cancelled();
    expect(await agent.exited).toBe(0);
  });

  test('is also caused by SIGTERM, and the agent then exits with 143', async () => {
    await start(sh('echo begun; sleep 600'));
    await fake.until(() => of('action_output').length === 1);
    await cancelled(() => agent.child.kill('SIGTERM'));
    expect(await agent.exited).toBe(143);
    expect(fake.shutdowns).toEqual(['terminated']);
    expect(fake.finished).toEqual([]);
  });
});
