/**
 * Tests two real MCP clients: the command line of the MCP inspector, and Claude Code, which starts a run and waits for it. Claude Code
 * uses a fake model. Both clients are large programs, so only `bin/test-long` runs the tests.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type { ListRunsResponse } from '@runyard/contract/runs/runs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fakeModelKeys } from './fakes/models.ts';
import { describeSystemWithModels } from './support/describe-system.ts';
import { installNpmPackages, type NpmPackages } from './support/npm-packages.ts';

const run = promisify(execFile);
const limitMs = 240_000;

describe('MCP clients', { tags: 'long' }, () => {
  describeSystemWithModels('of a whole system', {}, (system, models) => {
    let packages: NpmPackages;
    let home: string;
    beforeAll(async () => {
      packages = await installNpmPackages(path.join(import.meta.dirname, 'mcp-clients'));
      home = await mkdtemp(path.join(tmpdir(), 'runyard-mcp-'));
    }, limitMs);
    afterAll(async () => {
      if (packages?.kind === 'ready') await packages.remove();
      await rm(home, { recursive: true, force: true });
    });
    const inPackages = (file: string) =>
      path.join(packages.kind === 'ready' ? packages.folder : '', 'node_modules', file);
    const url = () => `${system.baseUrl()}/mcp`;

    test('the inspector lists tools and calls a tool', { timeout: limitMs }, async ({ skip }) => {
      if (packages.kind === 'missing') return skip(packages.reason);
      const inspect = async (...args: string[]): Promise<unknown> => {
        const { stdout } = await run(
          inPackages('.bin/mcp-inspector'),
          ['--cli', url(), '--transport', 'http', '--header', `Authorization: Bearer ${system.key}`, ...args],
          { env: { PATH: process.env.PATH, HOME: home } },
        );
        return JSON.parse(stdout);
      };
      expect(await inspect('--method', 'tools/list', '--strict')).toMatchObject({
        tools: expect.arrayContaining([expect.objectContaining({ name: 'start_run' })]),
      });
      expect(await inspect('--method', 'tools/call', '--tool-name', 'list_environments')).toMatchObject({
        content: [{ type: 'text', text: '{"environments":[]}' }],
      });
      expect(await inspect('--method', 'resources/templates/list')).toMatchObject({
        resourceTemplates: expect.arrayContaining([expect.objectContaining({ name: 'plan' })]),
      });
    });

    test('Claude Code starts a run, waits for its end and reads its result', { timeout: limitMs }, async ({ skip }) => {
      if (packages.kind === 'missing') return skip(packages.reason);
      const runIdIn = (results: readonly string[]) => /"run_id":"([^"]+)"/.exec(results.join('\n'))?.[1] ?? '';
      models.script(({ turn, toolResults }) => {
        const run_id = runIdIn(toolResults);
        const prompt = 'Make a number.\n\n```sh\necho $((6 * 7))\n```';
        const call = [
          {
            name: 'mcp__runyard__start_run',
            input: { prompt, title: 'By Claude Code', config: { model_id: 'runbook' } },
          },
          { name: 'mcp__runyard__wait_for_run', input: { run_id } },
          { name: 'mcp__runyard__get_conversation', input: { run_id } },
        ][turn];
        return call ? { toolCalls: [call] } : { text: [`The last result: ${toolResults.at(-1)}`] };
      });
      const servers = path.join(home, 'mcp.json');
      const headers = { Authorization: `Bearer ${system.key}` };
      await writeFile(servers, JSON.stringify({ mcpServers: { runyard: { type: 'http', url: url(), headers } } }));
      const program = `@anthropic-ai/claude-code-${process.platform}-${process.arch}/claude`;
      const claude = run(
        inPackages(program),
        [
          ...['-p', 'Let an agent make a number.', '--model', 'claude-opus-4-5'],
          ...['--mcp-config', servers, '--strict-mcp-config', '--allowedTools', 'mcp__runyard'],
        ],
        {
          cwd: home,
          env: {
            PATH: process.env.PATH,
            HOME: home,
            ANTHROPIC_BASE_URL: models.url,
            ANTHROPIC_API_KEY: fakeModelKeys.anthropic,
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
          },
        },
      );
      claude.child.stdin?.end();
      const { stdout } = await claude;
      const { runs } = await system.call<ListRunsResponse>('GET', '/agent/runs?q=Claude');
      expect(runs).toMatchObject([{ title: 'By Claude Code', state: 'SUCCEEDED' }]);
      expect(stdout).toContain('The last result:');
      expect(stdout).toContain('42');
    });
  });
});
