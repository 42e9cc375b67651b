import { describe, expect, test } from 'vitest';
import { drive } from '../../test/driver.ts';

describe('the driver', () => {
  test('creates an action from a permission request, allows the action once and records the decision', async () => {
    const { run, of, text } = drive('permission-first');
    expect((await run()).kind).toBe('succeeded');
    expect(text()).toBe('answered {"outcome":"selected","optionId":"once"}');
    expect(of('action')).toEqual([
      expect.objectContaining({ action_id: 't1', category: 'command', name: 'shell', input: { title: 'echo hi' } }),
    ]);
    expect(of('action_output').map((event) => event.text)).toEqual(['hi\n']);
    expect(of('action_result')).toEqual([expect.objectContaining({ action_id: 't1', state: 'completed' })]);
    expect(of('decided')).toEqual([
      expect.objectContaining({ kind: 'permission', action_id: 't1', decision: 'approve', by: 'policy' }),
    ]);
  });

  describe('with the policy ask', () => {
    const ask = { approvalPolicy: 'ask' } as const;
    const answer = (id: string, decision?: 'approve' | 'deny', message = '') => ({
      type: 'follow_up' as const,
      id: `f-${id}`,
      position: 1,
      message,
      answers: id,
      ...(decision ? { decision } : {}),
    });

    test('asks a person about one request after another while the turn continues', async () => {
      const { run, approvals, of, text, until } = drive('permission-twice', ask);
      const running = run();
      await until(() => of('blocked').length === 1);
      const [first] = of('blocked');
      expect(first?.request).toMatchObject({
        kind: 'permission',
        title: 'run t1',
        action: { id: 't1', name: 'shell' },
      });
      await until(() => of('action').length === 2);
      expect(approvals.answer(answer(first?.request.request_id ?? '', 'approve'))).toBe(true);
      await until(() => of('blocked').length === 2);
      expect(of('action_result').filter(({ action_id }) => action_id === 't2')).toEqual([]);
      approvals.answer(answer(of('blocked')[1]?.request.request_id ?? '', 'deny'));
      expect((await running).kind).toBe('succeeded');
      expect(text()).toBe('t1: once, t2: no');
      expect(of('action_result').map(({ action_id, state }) => `${action_id} ${state}`)).toEqual([
        't1 completed',
        't2 denied',
      ]);
      expect(of('follow_up_taken')).toHaveLength(2);
    });

    test('continues a turn that the harness ended after a denial, with a text about the denial', async () => {
      const { run, approvals, of, text, until } = drive('denial-ends-turn', ask);
      const running = run();
      await until(() => of('blocked').length === 1);
      approvals.answer(answer(of('blocked')[0]?.request.request_id ?? '', 'deny'));
      await until(() => of('blocked').length === 2);
      expect(text()).toMatch(/permission: rm -rf build\nThe user denied it\. Do not do it: find another way/);
      approvals.answer(answer(of('blocked')[1]?.request.request_id ?? '', 'approve'));
      expect((await running).kind).toBe('succeeded');
    });

    test('lets the turn end after a denial whose message becomes the next turn', async () => {
      const { run, approvals, of, until } = drive('denial-ends-turn', ask);
      const running = run();
      await until(() => of('blocked').length === 1);
      approvals.answer(answer(of('blocked')[0]?.request.request_id ?? '', 'deny', 'Keep the build.'));
      expect((await running).kind).toBe('succeeded');
      expect(of('blocked')).toHaveLength(1);
    });

    test('does not count the wait for the answer of a person in the duration of the call', async () => {
      const { run, approvals, of, until } = drive('permission-first', ask);
      const began = performance.now();
      const running = run();
      await until(() => of('blocked').length === 1);
      const asked = performance.now();
      while (performance.now() < asked + 300) await new Promise(setImmediate);
      const waited = performance.now() - asked;
      approvals.answer(answer(of('blocked')[0]?.request.request_id ?? '', 'approve'));
      await running;
      const ran = of('action_result')[0]?.duration_ms ?? Number.NaN;
      expect(ran).toBeLessThanOrEqual(performance.now() - began - waited + 1);
    });

    test.each(['approve', 'deny'] as const)(
      'runs the message of a denial as the next turn, but not the message of an approval (%s)',
      async (decision) => {
        const { run, approvals, of, text, until } = drive('permission-first', ask);
        const running = run();
        await until(() => of('blocked').length === 1);
        const words = answer(of('blocked')[0]?.request.request_id ?? '', decision, 'Mind the cat.');
        expect(approvals.answer(words), 'it is no turn of its own').toBe(decision === 'approve');
        await running;
        expect(text()).toContain(decision === 'deny' ? '"optionId":"no"' : '"optionId":"once"');
        expect(of('follow_up_taken')).toHaveLength(decision === 'approve' ? 1 : 0);
        expect(approvals.turnMessage(words)).toBe('Mind the cat.');
      },
    );

    test('treats a message without a decision as a denial and runs the message as the next turn', async () => {
      const { run, approvals, of, text, until } = drive('permission-first', ask);
      const running = run();
      await until(() => of('blocked').length === 1);
      const words = answer(of('blocked')[0]?.request.request_id ?? '', undefined, 'Do something else.');
      expect(approvals.answer(words)).toBe(false);
      await running;
      expect(text()).toContain('"optionId":"no"');
      expect(of('follow_up_taken')).toEqual([]);
    });

    test('cancels the request if the harness offers no option to deny or the turn is interrupted', async () => {
      const { driver, run, of, text } = drive('permission-without-no', { approvalPolicy: 'auto-deny' });
      expect((await run()).kind).toBe('succeeded');
      expect(text()).toBe('cancelled');
      expect(of('decided')).toEqual([expect.objectContaining({ decision: 'deny', by: 'policy' })]);
      await driver.kill();
      const interrupted = drive('permission-without-no', ask);
      const running = interrupted.run();
      await interrupted.until(() => interrupted.of('blocked').length === 1);
      interrupted.driver.interrupt(10_000);
      expect(await running).toEqual({ kind: 'interrupted', summary: 'cancelled' });
      expect(interrupted.of('decided')).toEqual([]);
    });
  });
});
