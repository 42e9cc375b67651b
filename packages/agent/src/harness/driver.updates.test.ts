import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { eventually } from '../../test/agent.ts';
import { drive } from '../../test/driver.ts';

describe('the driver', () => {
  test('reads output and exit code from _meta', async () => {
    const { run, of } = drive('terminal-output');
    await run();
    expect(of('action')).toHaveLength(1);
    expect(of('action_output').map((event) => event.text)).toEqual(['one\n', 'two\n']);
    expect(of('action_result')).toEqual([expect.objectContaining({ state: 'failed', exit_code: 3 })]);
    expect(of('action_result')[0]).not.toHaveProperty('output');
  });

  test('reads output and exit code from rawOutput and ends an action only once', async () => {
    const { run, of } = drive('raw-output');
    await run();
    expect(of('action')).toEqual([expect.objectContaining({ input: { command: 'ls' } })]);
    expect(of('action_result')).toEqual([
      expect.objectContaining({ state: 'completed', output: 'a\nb\n', exit_code: 0 }),
    ]);
  });

  test('derives the category of an action from the kind of the tool call and from the names of MCP tools', async () => {
    const { run, of } = drive('kinds', {
      mcpServers: [{ name: 'github', command: 'github-mcp', args: [], env: {} }],
    });
    await run();
    expect(of('action').map(({ name, category }) => [name, category])).toEqual([
      ['github.create_issue', 'integration'],
      ['github.search', 'integration'],
      ['github.create', 'integration'],
      ['github.list', 'integration'],
      ['read', 'files'],
      ['edit', 'files'],
      ['search', 'search'],
      ['fetch', 'search'],
      ['shell', 'command'],
      ['delete', 'files'],
      ['a-kind-of-the-future', 'integration'],
    ]);
  });

  test('reports thoughts, plans, modes and unknown updates as notices, and ignores malformed updates', async () => {
    const { run, of, text } = drive('other-updates');
    expect((await run()).kind).toBe('succeeded');
    expect(of('notice').map((event) => event.name)).toEqual(['thought', 'plan', 'mode', 'from_the_future', 'usage']);
    expect(of('notice')[0]?.data).toEqual({ text: 'Let me think.' });
    expect(text()).toBe('a\u0000b\uFFFDc');
    expect(of('action')).toEqual([]);
  });

  test('ends the actions that the harness leaves open at the end of a turn', async () => {
    const { run, of } = drive('leaves-open');
    await run();
    expect(of('action_result')).toEqual([expect.objectContaining({ action_id: 't1', state: 'failed' })]);
    expect(of('action_output')[0]?.text).toContain('without reporting the result');
  });

  test('stores lines that are not messages in the transcript', async () => {
    // The library of the protocol logs messages that it does not understand to the console.
    const written = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    onTestFinished(() => written.mockRestore());
    const { run, of, text } = drive('garbage');
    expect((await run()).kind).toBe('succeeded');
    expect(text()).toBe('still here');
    const raw = of('transcript').flatMap((event) => {
      const line = JSON.parse(event.line) as { raw?: string };
      return line.raw === undefined ? [] : [line.raw];
    });
    expect(raw).toEqual(['Welcome to the agent!', '{"not":"a message"}', '{broken', '[1,2]', expect.any(String)]);
  });

  test('splits a long text into several events, and the transcript has only the beginning of the long line', async () => {
    const { run, of, text } = drive('long-text');
    expect((await run()).kind).toBe('succeeded');
    expect(text()).toBe('z'.repeat(3 * 1024 * 1024));
    expect(Math.max(...of('text').map((event) => event.text.length))).toBe(64 * 1024);
    expect(Math.max(...of('transcript').map((event) => event.line.length))).toBeLessThan(10_000);
  });

  test('joins the halves of an emoji that come in two chunks of one message', async () => {
    const { run, of } = drive('emoji-in-two-chunks');
    expect((await run()).kind).toBe('succeeded');
    const messages = Map.groupBy(of('text'), (event) => event.message_id).values();
    expect([...messages].map((pieces) => pieces.map((event) => event.text).join(''))).toEqual([
      'start \u{1F600} end \ufffd',
      '\ufffd of another message',
      'last \ufffd',
    ]);
    const output = of('action_output').map((event) => event.text);
    expect(output.join('')).toBe('out \u{1F600}\ufffd');
    expect(of('notice').map((event) => event.data)).toContainEqual({ text: 'so \u{1F600}' });
  });

  test('does not split an emoji between two pieces of a text', async () => {
    const { run, of, text } = drive('emoji-at-64k');
    expect((await run()).kind).toBe('succeeded');
    expect(text()).toBe(`${'x'.repeat(64 * 1024 - 1)}\u{1F600}${'y'.repeat(10)}`);
    expect(of('text').map((event) => event.text.length)).toEqual([64 * 1024 - 1, 12]);
  });

  test('shortens a line that is too long, records this in the transcript and continues', async () => {
    const { run, of, text } = drive('huge-line');
    expect((await run()).kind).toBe('succeeded');
    expect(text()).toBe('after');
    const cut = of('transcript')
      .map((event) => JSON.parse(event.line) as { raw?: string; cut_from_bytes?: number })
      .find((line) => line.cut_from_bytes);
    expect(cut?.cut_from_bytes).toBeGreaterThan(9 * 1024 * 1024);
    expect(cut?.raw?.length).toBeLessThan(5000);
  });

  test('reads from a harness only while the reporter can take more events', async () => {
    let room = Promise.resolve();
    let passed = 0;
    let open = () => {};
    const { run, of, until } = drive('flood', {
      ready: () => {
        if (++passed === 100) {
          room = new Promise((resolve) => {
            open = resolve;
          });
        }
        return room;
      },
    });
    const running = run();
    await until(() => of('text').length > 80);
    await eventually(() => passed >= 100);
    for (let turns = 0; turns < 50; turns++) await new Promise(setImmediate);
    expect(of('text').length).toBeLessThan(110);
    open();
    expect(await running).toMatchObject({ kind: 'succeeded', summary: expect.stringMatching(/the end$/) });
    expect(of('text')).toHaveLength(30_001);
  });
});
