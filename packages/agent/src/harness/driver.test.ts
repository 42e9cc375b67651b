import { describe, expect, test } from 'vitest';
import { eventually, isRunning } from '../../test/agent.ts';
import { drive } from '../../test/driver.ts';

describe('the driver', () => {
  test('runs a turn, reports the text of the harness in order, and stores the messages of both sides in the transcript', async () => {
    const { run, of, text, events } = drive('hello');
    expect(await run()).toEqual({ kind: 'succeeded', summary: 'Hello world.' });
    expect(text()).toBe('Hello world.');
    expect(new Set(of('text').map((event) => event.message_id)).size).toBe(1);
    expect(events.at(-1)?.type).toBe('turn_finished');
    const lines = of('transcript').map((event) => JSON.parse(event.line) as { method?: string; id?: number });
    expect(lines.map((line) => line.method ?? `answer ${line.id}`)).toEqual([
      'initialize',
      'answer 0',
      'session/new',
      'answer 1',
      'session/prompt',
      'session/update',
      'session/update',
      'answer 2',
    ]);
  });

  test('sends no prompt that the harness could read as its own command', async () => {
    const { run, of } = drive('hello', { prompt: '/status gives 500' });
    await run();
    const lines = of('transcript').map(({ line }) => line);
    const prompt = lines.find((line) => line.includes('"session/prompt"')) ?? '';
    expect(JSON.parse(prompt).params.prompt).toEqual([{ type: 'text', text: 'The user says:\n\n/status gives 500' }]);
  });

  test('does not offer access to the file system or a terminal to the harness', async () => {
    const { run, of } = drive('hello');
    await run();
    const initialize = JSON.parse(of('transcript')[0]?.line ?? '') as { params: { clientCapabilities: object } };
    expect(Object.keys(initialize.params.clientCapabilities)).toEqual(['_meta']);
  });

  test('cancels a turn', async () => {
    const { driver, run, of, until } = drive('obeys-cancel');
    const running = run();
    await until(() => of('action').length === 1);
    driver.cancel();
    expect(await running).toEqual({ kind: 'cancelled' });
    expect(of('action_result')).toEqual([expect.objectContaining({ state: 'failed' })]);
    expect(of('action_output').map((event) => event.text)).toEqual(['[interrupted]\n']);
  });

  test('kills a harness that ignores a cancel, and kills the processes of the harness in other process groups', async () => {
    const { driver, run, of, until } = drive('ignores-cancel');
    const running = run();
    await until(() => of('action').length === 1);
    const { pid } = of('action')[0]!.input as { pid: number };
    driver.cancel();
    await driver.kill();
    expect(await running).toEqual({ kind: 'cancelled' });
    await eventually(() => !isRunning(pid));
  });

  test('reports which MCP servers of the run the harness cannot use', async () => {
    const { run, of } = drive('hello', {
      mcpServers: [
        { name: 'here', command: 'x', args: [], env: { A: 'b' } },
        { name: 'far', url: 'http://mcp' },
      ],
    });
    await run();
    expect(of('notice').map((event) => (event.data as { name: string }).name)).toEqual(['far']);
    const opened = of('transcript').map(
      (event) => JSON.parse(event.line) as { method?: string; params?: { mcpServers?: unknown } },
    );
    expect(opened.find((line) => line.method === 'session/new')?.params?.mcpServers).toEqual([
      { name: 'here', command: 'x', args: [], env: [{ name: 'A', value: 'b' }] },
    ]);
  });
});
