import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { ended, fake, of, scripted, start } from '../test/run.ts';

const hostile = fileURLToPath(new URL('../test/hostile-mcp-server.mjs', import.meta.url));
const program = (mode: string) => ({ name: mode, command: process.execPath, args: [hostile, mode], env: { A: 'b' } });

test('the agent tests the MCP servers before it passes them to an external harness', async () => {
  await start({ ...scripted('hello'), mcp_servers: [program('echo')] });
  await ended();
  expect(of('setup_step_finished')).toContainEqual(expect.objectContaining({ kind: 'mcp_server', name: 'echo' }));
  const lines = of('transcript').map(({ line }) => JSON.parse(line) as { method?: string; params?: object });
  expect(lines.find(({ method }) => method === 'session/new')?.params).toMatchObject({
    mcpServers: [
      { name: 'echo', command: process.execPath, args: [hostile, 'echo'], env: [{ name: 'A', value: 'b' }] },
    ],
  });
  expect(fake.finished[0]?.success).toBe(true);
});

test("a failing MCP server fails the run before an external harness starts, and the error has the server's name and last output", async () => {
  await start({ ...scripted('hello'), mcp_servers: [program('echo'), program('no-start')] });
  await ended();
  expect(of('agent_started')).toEqual([]);
  expect(fake.finished[0]).toMatchObject({
    success: false,
    error: {
      code: 'environment_setup_failed',
      message: expect.stringMatching(/MCP server no-start failed: .*the database of the server is not there/s),
    },
  });
});

test('the agent reports how many tools of MCP servers the model does not get', async () => {
  await start({ ...scripted('hello'), mcp_servers: [program('large-schema')] });
  await ended();
  expect(of('notice')).toContainEqual(
    expect.objectContaining({ name: 'mcp_tools_left_out', data: { name: 'large-schema', tools: 1, names: ['large'] } }),
  );
});
