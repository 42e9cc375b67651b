import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { runRow } from '../../../test/run-row.ts';
import { type Context, createContext } from '../../context/context.ts';
import { codeHosts } from './code-hosts.ts';

const made = {
  id: '1',
  scope: 'team',
  kind: 'token',
  host: 'github.com',
  owner: 'acme',
  created_at: '2026-01-01T00:00:00Z',
};
const bodies: unknown[] = [];
const printed: string[] = [];

const folder = newFolder();
const server: Server = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  bodies.push(JSON.parse(Buffer.concat(parts).toString()));
  response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify(made));
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address() as AddressInfo;
const env = { RUNYARD_BASE_URL: `http://127.0.0.1:${port}`, RUNYARD_API_KEY: 'ryk_test', RUNYARD_DATA_DIR: folder };
const print = (text: string) => void printed.push(text);
const context: Context = { ...createContext(env), out: print, report: print };
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

/** Runs `code-hosts add` with a file that has this text. */
async function add(text: string, ...words: string[]): Promise<void> {
  const file = path.join(folder, 'secret');
  writeFileSync(file, text);
  await runRow(codeHosts, context, 'add', '--file', file, ...words);
}

test('add stores a token from a file for the team and an owner, and prints no part of the token', async () => {
  await add(' github_pat_x\n', '--team', '--owner', 'acme');
  expect(bodies.at(-1)).toEqual({ scope: 'team', kind: 'token', owner: 'acme', token: 'github_pat_x' });
  expect(printed.join()).toContain('github.com/acme');
  expect(printed.join()).not.toContain('github_pat_x');
});

test("add stores the private key of a GitHub App, for the caller's own runs", async () => {
  await add('KEY\nOF APP\n', '--app-id', '7', '--installation', '8');
  expect(bodies.at(-1)).toEqual({
    scope: 'personal',
    kind: 'github_app',
    app_id: '7',
    installation_id: '8',
    private_key: 'KEY\nOF APP',
  });
});

test.each([
  ['an empty file', () => add(' '), 'is empty'],
  ['a file that does not exist', () => runRow(codeHosts, context, 'add', '--file', '/nonexistent'), 'there is no file'],
])('add refuses %s without a request to the service', async (_, run, message) => {
  const before = bodies.length;
  await expect(run()).rejects.toThrow(message);
  expect(bodies).toHaveLength(before);
});
