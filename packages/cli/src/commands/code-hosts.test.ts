import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Context, createContext } from '../context.ts';
import { addCodeHost } from './code-hosts.ts';

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
let server: Server;
let context: Context;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'code-hosts-'));
  server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    bodies.push(JSON.parse(Buffer.concat(parts).toString()));
    response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify(made));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const env = { RUNYARD_BASE_URL: `http://127.0.0.1:${port}`, RUNYARD_API_KEY: 'ryk_test', RUNYARD_DATA_DIR: folder };
  const print = (text: string) => void printed.push(text);
  context = { ...createContext(env), out: print, report: print };
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
  rmSync(folder, { recursive: true });
});

test('addCodeHost stores a token from standard input for the team and an owner, and prints no part of the token', async () => {
  await addCodeHost(context, { team: true, owner: 'acme', file: '-' }, () => ' github_pat_x\n');
  expect(bodies.at(-1)).toEqual({ scope: 'team', kind: 'token', owner: 'acme', token: 'github_pat_x' });
  expect(printed.join()).toContain('github.com/acme');
  expect(printed.join()).not.toContain('github_pat_x');
});

test("addCodeHost stores the private key of a GitHub App from a file, for the caller's own runs", async () => {
  const file = path.join(folder, 'app.pem');
  writeFileSync(file, 'KEY\nOF APP\n');
  await addCodeHost(context, { appId: '7', installation: '8', file });
  expect(bodies.at(-1)).toEqual({
    scope: 'personal',
    kind: 'github_app',
    app_id: '7',
    installation_id: '8',
    private_key: 'KEY\nOF APP',
  });
});

test.each([
  ['an empty input', '-', 'is empty'],
  ['a file that does not exist', '/nonexistent', 'there is no file'],
])('addCodeHost refuses %s without a request to the service', async (_, file, message) => {
  const before = bodies.length;
  await expect(addCodeHost(context, { file }, () => ' ')).rejects.toThrow(message);
  expect(bodies).toHaveLength(before);
});
