import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { githubExamples } from '@runyard/contract/team/github-examples';
import { afterAll, expect, test } from 'vitest';
import { runRow } from '../../../test/run-row.ts';
import { type Context, createContext } from '../../context/context.ts';
import { github } from './github.ts';

const asked: string[] = [];
const printed: string[] = [];

const server: Server = createServer((request, response) => {
  asked.push(`${request.method} ${request.url}`);
  const answer = request.method === 'GET' ? githubExamples.listGithubApps.answer : { success: true };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address() as AddressInfo;
const print = (text: string) => void printed.push(text);
const env = { RUNYARD_BASE_URL: `http://127.0.0.1:${port}`, RUNYARD_API_KEY: 'ryk_test' };
const context: Context = { ...createContext(env), out: print, report: print };
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

test('list shows each App with its installations and the account of the caller', async () => {
  await runRow(github, context, 'list');
  for (const { uid, handle, installations } of githubExamples.listGithubApps.answer.apps)
    for (const shown of [uid, handle, ...installations.flatMap((each) => [each.uid, each.account.login])])
      expect(printed.join('\n')).toContain(shown);
});

test('unlink, release and delete name what they end', async () => {
  await runRow(github, context, 'unlink', 'a1');
  await runRow(github, context, 'release', 'i1');
  await runRow(github, context, 'delete', 'a1');
  const below = '/api/v1/github';
  expect(asked.slice(-3)).toEqual([
    `DELETE ${below}/apps/a1/link`,
    `DELETE ${below}/installations/i1`,
    `DELETE ${below}/apps/a1`,
  ]);
});
