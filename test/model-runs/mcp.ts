/** Tests runs in real sandboxes that use tools of real MCP servers: programs in the sandbox, and a server over HTTP behind the gateway. */
import type { McpServer } from '@runyard/contract/team/mcp-servers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bundleMcpServers, type HttpMcpServer, startHttpMcpServer } from '../fakes/mcp-servers.ts';
import type { FakeConversation, FakeToolCall } from '../fakes/models/turns.ts';
import type { FakeModels } from '../fakes/models.ts';
import { startCommand } from '../support/command-line.ts';
import { runyardFile } from '../support/programs.ts';
import { oneModel } from '../support/run-kinds.ts';
import type { System } from '../support/system.ts';

const runyard = await runyardFile();
const authorization = 'Bearer credential-of-the-team-7731';
const variable = 'variable-of-the-team-5120';

export const describeMcp = (system: System, models: FakeModels) =>
  describe('MCP servers', () => {
    let remote: HttpMcpServer | undefined;
    beforeAll(async () => {
      remote = await startHttpMcpServer(authorization);
    });
    afterAll(() => remote?.close());

    const bundles = bundleMcpServers();
    /** Returns the programs that the servers start, as attachments of the run. */
    const attachmentsOf = async (servers: object) => {
      const names = (['everything', 'filesystem'] as const).filter((name) =>
        JSON.stringify(servers).includes(`${name}.mjs`),
      );
      return Promise.all(
        names.map(async (name) => ({
          file_name: `${name}.mjs`,
          mime_type: 'text/javascript',
          data: (await bundles)[name].toString('base64'),
        })),
      );
    };
    const everything = { command: 'node', args: ['attachments/everything.mjs', 'stdio'] };
    const filesystem = { command: 'node', args: ['attachments/filesystem.mjs', '/workspace'] };

    /** Returns the script of a fake model that makes these calls one after another, and then repeats the results. */
    const calls = (...toolCalls: FakeToolCall[]) =>
      models.script(({ turn, toolResults }: FakeConversation) => {
        const call = toolCalls[turn];
        return call ? { toolCalls: [call] } : { text: [`The last result: ${toolResults.join()}`] };
      });
    /** Starts a run with these MCP servers. `stored` has the ids of stored servers. */
    const run = async (mcp_servers: object, more: object = {}, stored: object = {}) => {
      const config = { ...oneModel, mcp_servers, ...more };
      const attachments = await attachmentsOf({ mcp_servers, stored });
      return await system.createRun('Use your tools.', { config, attachments });
    };
    const read = async (runId: string, what: string) => {
      const headers = { authorization: `Bearer ${system.key}` };
      const answer = await fetch(`${system.baseUrl()}/api/v1/agent/runs/${runId}/${what}`, { headers });
      expect(answer.status).toBe(200);
      return await answer.text();
    };
    const store = (server: object) => system.call<McpServer>('POST', '/agent/mcp-servers', server, 201);

    test('run as programs in the sandbox and give their tools to the harness oz', async () => {
      const before = models.requests.length;
      calls(
        { name: 'mcp__every__echo', input: { message: 'ping-41' } },
        { name: 'mcp__files__write_file', input: { path: '/workspace/made.txt', content: 'by a tool' } },
        { name: 'shell', input: { command: 'cat made.txt' } },
        { name: 'mcp__every__get-tiny-image', input: {} },
      );
      const runId = await run({ every: everything, files: filesystem });
      const ended = await system.untilEnded(runId);
      expect(ended.state, JSON.stringify(ended.status_message)).toBe('SUCCEEDED');
      const requests = models.requests.slice(before);
      expect(requests[0]?.conversation?.toolNames).toEqual(
        expect.arrayContaining(['shell', 'mcp__every__echo', 'mcp__files__write_file']),
      );
      expect(requests.map(({ conversation }) => conversation?.toolResults.join()).join('\n')).toMatch(
        /Echo: ping-41[\s\S]*by a tool[\s\S]*image\/png of \d+ bytes, in the next message/,
      );
      expect(JSON.stringify(requests.at(-1)?.body), 'the image itself').toContain('iVBORw0KGgoAAAANSUhEUgAAABQ');
      expect(await read(runId, 'conversation')).toContain('every.echo');
      expect(await read(runId, 'timeline')).toContain('mcp_server');
    });

    test('can be stored: a server over HTTP gets the stored headers of the team, and a program its stored variables', async () => {
      const http = await store({ name: 'Remote', url: remote?.url, headers: { Authorization: authorization } });
      const program = await store({ name: 'Program', ...everything, env: { TEAM_KEY: variable } });
      calls(
        { name: 'mcp__far__echo', input: { message: 'ping-42' } },
        { name: 'shell', input: { command: 'env; cat /proc/*/environ | tr "\\0" "\\n"; cat /proc/*/cmdline' } },
        { name: 'mcp__near__get-env', input: {} },
      );
      const runId = await run({ far: { warp_id: http.id }, near: { id: program.id } }, {}, everything);
      const ended = await system.untilEnded(runId);
      expect(ended.state, JSON.stringify(ended.status_message)).toBe('SUCCEEDED');
      const conversation = await read(runId, 'conversation');
      expect(conversation).toContain('Echo: ping-42');
      expect(conversation, 'the program has its variable').toMatch(/TEAM_KEY\\+":\s*\\+"«redacted»/);
      expect(remote?.admitted.length).toBeGreaterThan(0);
      for (const headers of remote?.admitted ?? []) expect(JSON.stringify(headers)).not.toContain('ryr_');
      for (const what of ['conversation', 'timeline', 'transcript'])
        for (const value of ['credential-of-the-team', variable])
          expect(await read(runId, what), what).not.toContain(value);
    });

    test('get only the secrets that they name, as programs and over HTTP', async () => {
      await system.call('PUT', '/secrets/OF_PROGRAM', { value: 'secret-of-the-program-8802', scope: 'personal' });
      await system.call('PUT', '/secrets/OF_REMOTE', { value: authorization.slice(7), scope: 'team' });
      const [ofProgram, ofRemote] = ['OF_PROGRAM', 'OF_REMOTE'].map((name) => `\${${name}}`);
      calls(
        { name: 'mcp__far__echo', input: { message: 'ping-44' } },
        { name: 'shell', input: { command: 'env | sort' } },
        { name: 'mcp__near__get-env', input: {} },
      );
      const runId = await run({
        far: { url: remote?.url, headers: { Authorization: `Bearer ${ofRemote}` } },
        near: { ...everything, env: { PROGRAM_KEY: ofProgram } },
      });
      const ended = await system.untilEnded(runId);
      expect(ended.state, JSON.stringify(ended.status_message)).toBe('SUCCEEDED');
      const conversation = await read(runId, 'conversation');
      expect(conversation).toContain('Echo: ping-44');
      expect(conversation, 'only its program has the variable').toMatch(/PROGRAM_KEY\\+":\s*\\+"«redacted»/);
      expect(conversation).not.toContain('PROGRAM_KEY=');
      for (const text of [conversation, await read(runId, 'timeline'), await read(runId, 'transcript')])
        expect(text).not.toMatch(/credential-of-the-team|secret-of-the-program/);
      expect(JSON.stringify(models.requests.at(-1)?.body)).not.toContain('secret-of-the-program');
    });

    test('get a call only after a person has approved it, and no call if the approval policy denies it', async () => {
      calls({ name: 'mcp__every__echo', input: { message: 'ping-43' } });
      const asking = await run({ every: everything }, { approval_policy: 'ask', idle_timeout_minutes: 5 });
      const blocked = await system.until(asking, ({ state }) => state === 'BLOCKED');
      expect(blocked.blocked_on).toMatchObject({
        kind: 'permission',
        title: 'every: echo {"message":"ping-43"}',
        action: { category: 'integration' },
      });
      await system.call('POST', `/agent/runs/${asking}/followups`, { decision: 'approve' });
      expect((await system.untilEnded(asking)).state).toBe('SUCCEEDED');
      expect(await read(asking, 'conversation')).toContain('Echo: ping-43');
      const denied = await run({ every: everything }, { approval_policy: 'auto-deny' });
      await system.untilEnded(denied);
      expect(await read(denied, 'conversation')).not.toContain('Echo: ping-43');
    });

    test('can be managed by `bin/runyard mcp` without secrets on the command line', { tags: 'long' }, async () => {
      const env = { RUNYARD_BASE_URL: system.baseUrl(), RUNYARD_API_KEY: system.key };
      const mcp = async (args: readonly string[], input = '') => {
        const command = startCommand([runyard, 'mcp', ...args], { cwd: system.dataDir, env, input });
        expect(await command.exited, command.output()).toBe(0);
        return command.output();
      };
      const values = JSON.stringify({ authorization });
      const made = await mcp(['create', 'By hand', '--url', remote?.url ?? '', '--values', '-', '--json'], values);
      const { id } = JSON.parse(made) as McpServer;
      await mcp(['update', id, '--name', 'Renamed']);
      const list = await mcp(['list']);
      expect(list).toMatch(/Renamed.*authorization/);
      expect(made + list + (await mcp(['get', id]))).not.toContain('credential-of-the-team');
      expect(await mcp(['delete', id])).toBe(`${id} is deleted\n`);
    });

    describe('a server that cannot be used', () => {
      test.each([
        [
          'a program that fails',
          { command: 'sh', args: ['-c', 'echo no licence >&2; exit 4'] },
          /exited with code 4.*no licence/s,
        ],
        ['an address that is not allowed', { url: 'http://169.254.169.254/mcp' }, /169\.254\.169\.254 is not public/],
        [
          'a credential that is refused',
          { url: 'REMOTE', headers: { authorization: 'wrong' } },
          /refused the stored headers with status 401/,
        ],
      ])('fails the run, and the error names the server: %s', async (_, server, message) => {
        const given = 'url' in server && server.url === 'REMOTE' ? { ...server, url: remote?.url } : server;
        const ended = await system.untilEnded(await run({ broken: given }));
        expect(ended).toMatchObject({
          state: 'FAILED',
          status_message: {
            error_code: 'environment_setup_failed',
            message: expect.stringMatching(new RegExp(`MCP server broken failed: .*${message.source}`, 's')),
          },
        });
      });
    });
  });
