import { describe, expect, test } from 'vitest';
import { eventually, isRunning } from '../../test/agent.ts';
import { drive } from '../../test/driver.ts';

describe('the driver', () => {
  test('reports the exit code and the standard error of a harness that exits at once', async () => {
    const outcome = await drive('exits-at-once').run();
    expect(outcome).toMatchObject({ kind: 'failed', code: 'agent_process_failed' });
    expect(outcome.kind === 'failed' && outcome.message).toMatch(
      /exited with code 2 before it answered initialize.*no such option: --acp/s,
    );
  });

  test('reports a harness that cannot be started', async () => {
    const outcome = await drive('', { command: ['/no/such/harness'] }).run();
    expect(outcome).toMatchObject({
      kind: 'failed',
      code: 'agent_process_failed',
      message: expect.stringMatching(/could not be started.*ENOENT/),
    });
  });

  test.each([
    ['silent', 'initialize', 500],
    // The timeout is long enough for a harness to start on a busy machine.
    ['silent-session', 'session/new', 5_000],
  ])('stops waiting for a harness that is %s', async (mode, method, startTimeoutMs) => {
    const outcome = await drive(mode, { startTimeoutMs }).run();
    expect(outcome).toMatchObject({
      kind: 'failed',
      code: 'agent_process_failed',
      message: expect.stringContaining(`did not answer ${method}`),
    });
  });

  test('quotes the first lines of a harness that prints text that is not a message', async () => {
    expect(await drive('glued', { startTimeoutMs: 2_000 }).run()).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining(
        'Its standard output began with text that is not a protocol message: "\\u001b[1mready\\u001b[0m {',
      ),
    });
  });

  test('reports the error of a harness that requires a login', async () => {
    expect(await drive('wants-login').run()).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('Authentication required'),
    });
  });

  test('refuses a harness that speaks another version of the protocol', async () => {
    expect(await drive('other-version').run()).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('version 2'),
    });
  });

  test('reports a harness that exits in a turn and ends the open actions of the turn', async () => {
    const { run, of } = drive('dies-in-turn');
    const outcome = await run();
    expect(outcome).toMatchObject({ kind: 'failed', code: 'agent_process_failed' });
    expect(outcome.kind === 'failed' && outcome.message).toMatch(
      /exited with code 9 before it answered session\/prompt.*Segmentation fault/s,
    );
    expect(of('action_result')).toEqual([expect.objectContaining({ state: 'failed' })]);
    expect(of('turn_finished')).toHaveLength(1);
  });

  test('kills a harness that ignores an interrupt, kills all processes of the harness, and ends the turn as interrupted', async () => {
    const { driver, run, of, until } = drive('ignores-cancel');
    const running = run();
    await until(() => of('action').length === 1);
    const pid = Number((of('action')[0]?.input as { pid?: unknown } | undefined)?.pid);
    expect(driver.isAlive).toBe(true);
    driver.interrupt(300);
    expect(await running).toEqual({ kind: 'interrupted', summary: '' });
    expect(driver.isAlive).toBe(false);
    await eventually(() => !isRunning(pid));
    expect(of('action_result')).toMatchObject([{ state: 'failed' }]);
    expect(of('notice')).toMatchObject([
      { name: 'harness_killed', data: { reason: expect.stringContaining('within 0.3 s of the interrupt') } },
    ]);
    expect(of('turn_finished')).toHaveLength(1);
  });

  test('does not kill a harness that ends its turn within the time limit after an interrupt', async () => {
    const { driver, run, of, until } = drive('obeys-cancel');
    const running = run();
    await until(() => of('action').length === 1);
    driver.interrupt(10_000);
    expect(await running).toEqual({ kind: 'interrupted', summary: '' });
    expect(driver.isAlive).toBe(true);
    expect(of('notice')).toEqual([]);
  });

  test.each([
    ['refuses', 'refused'],
    ['token-limit', 'limit of tokens'],
    ['cancels-itself', 'cancelled its turn by itself'],
  ])('reports a failure if the agent %s', async (mode, message) => {
    expect(await drive(mode).run()).toMatchObject({ kind: 'failed', message: expect.stringContaining(message) });
  });
});
