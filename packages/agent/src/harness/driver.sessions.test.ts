import { describe, expect, test } from 'vitest';
import { testFolder } from '../../test/agent.ts';
import { drive } from '../../test/driver.ts';

describe('the session of an earlier harness process', () => {
  const home = testFolder();
  const before = async (mode: string) => {
    const first = drive(mode, { home });
    await first.run();
    await first.driver.kill();
    return first.driver.loadableSession;
  };

  test('is continued if the harness can load sessions, and messages that the harness repeats are not reported again', async () => {
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

  test('is not reported as loadable if the harness cannot load sessions', async () => {
    expect(await before('remembers-not')).toBeUndefined();
  });
});
