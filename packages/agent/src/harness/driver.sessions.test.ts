import { describe, expect, test } from 'vitest';
import { testFolder } from '../../test/agent.ts';
import { drive } from '../../test/driver.ts';

describe('a session of an earlier process', () => {
  const home = testFolder();
  const before = async (mode: string) => {
    const first = drive(mode, { home });
    await first.run();
    await first.driver.kill();
    return first.driver.loadableSession;
  };

  test('is continued if the harness loads sessions, and the repeated messages are not reported', async () => {
    const session = await before('remembers');
    expect(session).toMatch(/^s\d/);
    const { run, text, of, driver } = drive('remembers', { home });
    expect((await run([], session)).kind).toBe('succeeded');
    expect(text()).toBe('I remember "Do it."\n"Go on."\n');
    expect(driver.loadableSession).toBe(session);
    expect(of('notice')).toEqual([]);
    expect(JSON.stringify(of('transcript'))).not.toContain('replayed');
  });

  test('is replaced by a new session, with a notice, if it cannot be loaded', async () => {
    const session = await before('remembers');
    const { run, text, of, driver } = drive('load-fails', { home });
    expect((await run([], session)).kind).toBe('succeeded');
    expect(text()).toBe('I remember "Do it."\n');
    expect(driver.loadableSession).not.toBe(session);
    expect(of('notice').map(({ name, data }) => [name, data])).toEqual([
      ['session_not_loaded', { reason: expect.stringContaining('the session is damaged') }],
    ]);
    expect(JSON.stringify(of('transcript'))).toContain('I remember');
  });

  test('is not reported if the harness does not load sessions', async () => {
    expect(await before('remembers-not')).toBeUndefined();
  });
});
