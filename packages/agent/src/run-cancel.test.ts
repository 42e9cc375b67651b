import { describe, expect, test } from 'vitest';
import { eventually, isRunning } from './test-agent.ts';
import { agent, fake, numbered, of, scripted, sh, start } from './test-run.ts';

describe('a cancel', () => {
  async function cancelled(stop: () => void = () => fake.cancel()): Promise<number> {
    const started = performance.now();
    stop();
    await agent.exited;
    numbered();
    return performance.now() - started;
  }

  test('stops a command, settles it, reports the shutdown and exits with 0', async () => {
    await start(sh('echo begun; sleep 600'));
    await fake.until(() => of('action_output').length === 1);
    expect(await cancelled()).toBeLessThan(5_000);
    expect(await agent.exited).toBe(0);
    expect(of('action_result')).toEqual([expect.objectContaining({ state: 'failed' })]);
    expect(of('turn_finished')).toHaveLength(1);
    expect(fake.finished).toEqual([]);
    expect(fake.shutdowns).toEqual(['cancelled']);
  });

  test('stops a command that ignores SIGTERM and what it detached', async () => {
    await start(sh('trap "" TERM\nsetsid sleep 600 & echo $!\nwhile true; do sleep 1; done'));
    await fake.until(() => of('action_output').length === 1);
    const pid = Number(of('action_output')[0]?.text);
    expect(await cancelled()).toBeLessThan(5_000);
    await eventually(() => !isRunning(pid));
    expect(fake.shutdowns).toEqual(['cancelled']);
  });

  test('ends within 5 s a harness that ignores it, with what it detached', async () => {
    await start(scripted('ignores-cancel'));
    await fake.until(() => of('action').length === 1);
    const { pid } = of('action')[0]!.input as { pid: number };
    expect(await cancelled()).toBeLessThan(5_000);
    expect(await agent.exited).toBe(0);
    await eventually(() => !isRunning(pid));
    expect(of('action_result')).toEqual([expect.objectContaining({ state: 'failed' })]);
    expect(fake.shutdowns).toEqual(['cancelled']);
  }, 15_000);

  test('ends a setup command', async () => {
    await start({ ...sh('true'), environment: { uid: 'e', config: { setup_commands: ['sleep 600'] } } });
    await fake.until(() => of('setup_step_started').length === 1);
    expect(await cancelled()).toBeLessThan(5_000);
    expect(of('agent_started')).toEqual([]);
    expect(fake.shutdowns).toEqual(['cancelled']);
  });

  test('ends the agent within 5 s although the service takes no reports', async () => {
    await start(sh('echo begun; sleep 600'));
    await fake.until(() => of('action_output').length === 1);
    fake.fault = ({ path }) => (path.endsWith('/inbox') ? undefined : { status: 503 });
    expect(await cancelled()).toBeLessThan(5_500);
    expect(await agent.exited).toBe(0);
  }, 15_000);

  test('by SIGTERM stops the run in the same way', async () => {
    await start(sh('echo begun; sleep 600'));
    await fake.until(() => of('action_output').length === 1);
    await cancelled(() => agent.child.kill('SIGTERM'));
    expect(await agent.exited).toBe(143);
    expect(fake.shutdowns).toEqual(['terminated']);
    expect(fake.finished).toEqual([]);
  });
});
