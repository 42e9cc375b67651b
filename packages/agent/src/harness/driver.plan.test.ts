import { expect, test } from 'vitest';
import { drive } from '../../test/driver.ts';

test.each(['plan-writes', 'plan-writes-at-the-end'])(
  'a turn with the mode plan that changes a file fails and names the file: %s',
  async (mode) => {
    const { run, of } = drive(mode, { isPlan: true });
    const outcome = await run();
    expect(outcome).toMatchObject({ kind: 'failed', message: expect.stringContaining('but made was changed') });
    expect(of('notice')).toEqual(
      expect.arrayContaining([expect.objectContaining({ name: 'plan_changed', data: { path: 'made' } })]),
    );
  },
);

test('a turn with another mode may change files', async () => {
  expect((await drive('plan-writes-at-the-end').run()).kind).toBe('succeeded');
});

test("a turn with the mode plan sets the harness' own mode, denies edits and the end of this mode, and the next turn resets the mode", async () => {
  const { run, text, of } = drive('plan-modes', { isPlan: true });
  expect((await run()).kind).toBe('succeeded');
  expect(text()).toBe('edit no, switch_mode no, read yes, mode plan');
  expect(of('action_result').map(({ action_id, state }) => `${action_id} ${state}`)).toContain('edit denied');
  expect((await run([], undefined, false)).kind).toBe('succeeded');
  expect(text()).toContain('edit yes, switch_mode yes, read yes, mode default');
});
