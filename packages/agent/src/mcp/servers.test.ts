import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import { afterEach, describe, expect, test } from 'vitest';
import { eventually, isRunning, testFolder } from '../../test/agent.ts';
import type { NetworkAccess } from '../egress/forwarder.ts';
import { setupSteps } from '../reporting/setup-steps.ts';
import { connectToService } from '../service/connection.ts';
import { type RunMcp, runMcp } from './servers.ts';

const hostile = fileURLToPath(new URL('../../test/hostile-mcp-server.mjs', import.meta.url));
const agentProgram = [process.execPath, fileURLToPath(new URL('../main.ts', import.meta.url))] as const;
const server = (mode: string, name = 'bad') => ({ name, command: process.execPath, args: [hostile, mode] });

/** An MCP server that is a shell script. */
const script = (text: string) => ({ name: 'bad', command: 'sh', args: ['-c', text] });
const printing = (text: string) => script(`echo '${text}' >&2; exit 1`);

let mcp: RunMcp | undefined;
afterEach(() => mcp?.close());

function open(startTimeoutMs = 20_000, network: NetworkAccess = 'open') {
  const workspace = testFolder();
  const events: AgentEventBody[] = [];
  const connection = connectToService({ serverRoot: 'http://127.0.0.1:1', token: 'ryr_secret-of-the-run' });
  const env = { PATH: process.env.PATH, HOME: workspace, RUNYARD_AGENT_SOCKET: workspace };
  const opened = runMcp({ connection, workspace, env, network, startTimeoutMs, agentProgram });
  mcp = opened;
  const step = setupSteps((event) => events.push(event));
  const start = (servers: Parameters<RunMcp['start']>[0], use: 'agent' | 'harness' = 'agent') =>
    opened.start(servers, { use, step, signal: new AbortController().signal });
  const finished = () => events.filter((event) => event.type === 'setup_step_finished');
  return { mcp: opened, start, finished, workspace };
}

const never = new AbortController().signal;

describe('a server that does not start', () => {
  test('fails the setup with an error that has the name of the server and the end of its output', async () => {
    const { start, finished } = open();
    await expect(start([server('no-start')])).rejects.toThrow(
      /MCP server bad failed: it exited with code 3\.\nEnd of its output:\nthe database of the server is not there/,
    );
    expect(finished()).toEqual([
      expect.objectContaining({
        kind: 'mcp_server',
        name: 'bad',
        error: 'it exited with code 3',
        output_tail: 'the database of the server is not there\n',
      }),
    ]);
  });

  test('fails the setup if the program of the server does not exist', async () => {
    const { start } = open();
    await expect(start([{ name: 'none', command: '/does/not/exist' }])).rejects.toThrow(
      /MCP server none failed: it could not be started: .*ENOENT/,
    );
  });

  test('fails the setup if the server does not answer in time', async () => {
    const { start } = open(500);
    await expect(start([server('silent')])).rejects.toThrow('it did not list its tools within 0.5 s');
  });

  test.each([
    [
      'waits for a host in silence',
      'none',
      500,
      server('silent'),
      /The sandbox has no network, and a server that is downloaded when it starts/,
    ],
    [
      'cannot look up a name',
      'none',
      20_000,
      printing('getaddrinfo EAI_AGAIN registry.example.com'),
      /The sandbox has no network/,
    ],
    [
      'is refused by the proxy',
      'allow_list',
      20_000,
      printing('npm error code E403'),
      /network\.allowed_hosts and network\.presets/,
    ],
    ['cannot be downloaded', 'none', 20_000, script('exit 1; npx -y @acme/server'), /The sandbox has no network/],
    ['has another fault', 'none', 20_000, printing('no database'), /Correct config\.mcp_servers/],
    ['has the network', 'open', 500, server('silent'), /Correct config\.mcp_servers/],
  ] as const)('fails with advice if it %s', async (_, network, timeoutMs, bad, advice) => {
    const { start } = open(timeoutMs, network);
    await expect(start([bad])).rejects.toThrow(advice);
  });

  test('fails the setup if the server cannot list its tools', async () => {
    const { start } = open();
    await expect(start([server('no-list')])).rejects.toThrow(/MCP server bad failed: .*no tools for you/);
  });

  test('fails the setup at once: the agent stops the other servers and does not wait until they have started', async () => {
    const { start, finished } = open(60_000);
    const began = performance.now();
    await expect(start([server('silent', 'slow'), server('no-start')])).rejects.toThrow('MCP server bad');
    expect(performance.now() - began).toBeLessThan(30_000);
    expect(finished()).toHaveLength(2);
  });
});

describe('a server that prints without end', () => {
  test.each([
    ['lines that are no messages', 'flood', /more than 33554432 bytes without being asked/],
    ['one line', 'long-line', /a message of more than 8388608 bytes|without being asked/],
  ])('is stopped: %s', async (_, mode, message) => {
    await expect(open().start([server(mode)])).rejects.toThrow(message);
  });

  test('is still used if it prints many errors, and only the last errors are stored', async () => {
    const { mcp, start } = open();
    await start([server('flood-errors')]);
    expect((await mcp.tools[0]?.call({}, never))?.failed).toBe(false);
  });

  test('is stopped during a tool call, and the call fails', async () => {
    const { mcp, start } = open();
    await start([server('floods-later')]);
    expect(await mcp.tools[0]?.call({}, never)).toEqual({
      text: expect.stringContaining('without being asked'),
      images: [],
      failed: true,
    });
    expect((await mcp.tools[0]?.call({}, never))?.text).toContain('does not run any more');
  });
});

describe('the tools of a server', () => {
  test('are limited in number, and the omitted tools are counted', async () => {
    const { mcp, start } = open();
    await start([server('many')]);
    expect(mcp.tools).toHaveLength(64);
    expect(mcp.leftOut).toMatchObject([{ name: 'bad', tools: expect.any(Number) }]);
  });

  test('are read from a limited number of pages, even if the list of tools never ends', async () => {
    const { mcp, start } = open();
    await start([server('empty-pages')]);
    expect(mcp.tools).toEqual([]);
    expect(mcp.leftOut).toEqual([{ name: 'bad', tools: 1, names: [] }]);
  });

  test('include odd tools in repaired form, without the tools that cannot be repaired', async () => {
    const { mcp, start } = open();
    await start([server('odd')]);
    expect(mcp.tools.map(({ tool }) => tool)).toEqual(['untyped', 'create-attachment', 'label', 'described']);
    expect(mcp.leftOut).toEqual([{ name: 'bad', tools: 2, names: [] }]);
    expect(mcp.tools[1]?.description).toContain('at least one of these sets of members: (content) or (source_url)');
    expect(await mcp.tools[1]?.call({ content: 'x' }, never)).toMatchObject({ text: expect.stringMatching(/done$/) });
  });

  test('are omitted if their schemas are too large', async () => {
    const { mcp, start } = open();
    await start([server('large-schema')]);
    expect(mcp.tools.map(({ tool }) => tool)).toEqual(['small']);
    expect(mcp.leftOut).toEqual([{ name: 'bad', tools: 1, names: ['large'] }]);
  });

  test('get unique names for the model, even if a server imitates the names of another server', async () => {
    const { mcp, start } = open();
    await start([server('forged'), server('', 'other')]);
    const names = mcp.tools.map(({ name }) => name);
    expect(names[0]).toBe('mcp__bad__shell');
    expect(names).toEqual([...new Set(names)]);
    expect(names.filter((name) => name.startsWith('mcp__other__'))).toEqual(['mcp__other__act']);
    for (const name of names) expect(name).toMatch(/^mcp__(bad|other)__[A-Za-z0-9_-]{1,64}$/);
    expect(Math.max(...names.map(({ length }) => length))).toBeLessThanOrEqual(64);
    expect(mcp.tools[0]?.description.length).toBeLessThanOrEqual(2_000);
    expect(mcp.leftOut).toEqual([{ name: 'bad', tools: 1, names: ['shell'] }]);
  });
});

describe('a call of an MCP tool', () => {
  test('runs with its input and the variables of the server, but without a credential', async () => {
    const { mcp, start, workspace } = open();
    const env = { TICKETS_KEY: 'k', RUNYARD_AGENT_SOCKET: 'another run' };
    await start([{ ...server('echo'), env }]);
    const result = await mcp.tools[0]?.call({ a: 1 }, never);
    const said = JSON.parse(result?.text ?? '') as { name: string; arguments: unknown; env: Record<string, string> };
    expect(said).toMatchObject({ name: 'act', arguments: { a: 1 } });
    expect(said.env).toMatchObject({ TICKETS_KEY: 'k', RUNYARD_AGENT_SOCKET: workspace });
    expect(JSON.stringify(said.env)).not.toContain('ryr_');
  });

  test('fails if the server dies', async () => {
    const { mcp, start } = open();
    await start([server('dies')]);
    expect(await mcp.tools[0]?.call({}, never)).toMatchObject({
      text: expect.stringContaining('it exited with code 9'),
      failed: true,
    });
  });

  test('returns a text of limited size', async () => {
    const { mcp, start } = open();
    await start([server('long-answer')]);
    expect((await mcp.tools[0]?.call({}, never))?.text.length).toBeLessThan(33 * 1024);
  });
});

test('the end of the run kills an MCP server that ignores SIGTERM', async () => {
  const { mcp, start } = open();
  await start([server('ignores-term')]);
  const { pid } = JSON.parse((await mcp.tools[0]?.call({}, never))?.text ?? '') as { pid: number };
  expect(isRunning(pid)).toBe(true);
  await mcp.close();
  await eventually(() => !isRunning(pid));
});

test('the agent starts the MCP servers of an external harness only as a test, and stops them so that the harness can start them', async () => {
  const { mcp, start } = open();
  await start([server('echo')], 'harness');
  expect(mcp.tools).toEqual([]);
  expect(mcp.forHarness).toEqual([{ name: 'bad', command: process.execPath, args: [hostile, 'echo'], env: {} }]);
});

test('an external harness gets an odd server behind the command mcp-server, which repairs the list of tools', async () => {
  const { mcp, start } = open();
  await start([server('odd')], 'harness');
  const [command, ...first] = agentProgram;
  expect(mcp.forHarness).toEqual([
    { name: 'bad', command, args: [...first, 'mcp-server', process.execPath, hostile, 'odd'], env: {} },
  ]);
  const [given] = mcp.forHarness;
  if (given === undefined || !('command' in given)) throw new Error('no command');
  const client = new Client({ name: 'strict', version: '1' });
  await client.connect(new StdioClientTransport({ command: given.command, args: [...given.args] }));
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(['untyped', 'create-attachment', 'label', 'described']);
  expect(tools.find(({ name }) => name === 'create-attachment')).toMatchObject({
    inputSchema: { type: 'object', properties: { content: {}, source_url: {} } },
    description: expect.stringContaining('at least one of these sets'),
  });
  expect(await client.callTool({ name: 'label', arguments: {} })).toMatchObject({ content: [{ type: 'text' }] });
  await client.close();
});
