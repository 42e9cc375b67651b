import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { runRow } from '../../test/run-row.ts';
import { budget } from '../commands/budget/budget.ts';
import { environments } from '../commands/environments/environments.ts';
import { factories } from '../commands/factories/factories.ts';
import { keys } from '../commands/keys/keys.ts';
import { users } from '../commands/users/users.ts';
import { type Context, createContext } from '../context/context.ts';
import type { Row } from './row.ts';

let answers: object[];
let requests: IncomingMessage[];
let printed: string[];
const server: Server = createServer((request, response) => {
  requests.push(request);
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answers.shift() ?? {}));
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address() as AddressInfo;
const own = createContext({ RUNYARD_BASE_URL: `http://127.0.0.1:${port}`, RUNYARD_API_KEY: 'ryk_test' });
const out = (text: string) => void printed.push(text);
const context: Context = { ...own, out, report: (text) => out(`report: ${text}\n`) };
afterAll(() => {
  server.close();
  server.closeAllConnections();
});
beforeEach(() => {
  [requests, printed] = [[], []];
});

/** Runs the command while the service gives these answers. Returns what the command prints and reports. */
async function printedBy(rows: readonly Row[], words: readonly string[], ...given: object[]): Promise<string> {
  answers = given;
  await runRow(rows, context, ...words);
  return printed.join('');
}

test('a list of all pages prints the rows of each page as one list', async () => {
  const page = (uid: string, more: object) => ({ factories: [{ uid }], page_info: more });
  const pages = [page('a', { has_next_page: true, next_cursor: 'c1' }), page('b', { has_next_page: false })];
  expect(await printedBy(factories, ['list', '--json'], ...pages)).toBe('{"factories":[{"uid":"a"},{"uid":"b"}]}\n');
  expect(requests.map(({ url }) => url)).toEqual(['/api/v1/factory?limit=100', '/api/v1/factory?limit=100&cursor=c1']);
});

test('a new person accepts an invitation without the API key of the environment', async () => {
  const answer = { key: 'ryk_new', team: { name: 'Shop', role: 'member' } };
  expect(await printedBy(users, ['accept', 'ryi_x', 'Bob'], answer)).toContain(
    'ryk_new\nreport: you are member of Shop',
  );
  expect(requests[0]?.headers.authorization).toBeUndefined();
});

test('with --json a command prints only the answer, and without it the lines and the notes', async () => {
  const answer = { uid: '1', name: 'CI', key: 'ryk_new' };
  expect(await printedBy(keys, ['create', 'CI', '--json'], answer)).toBe(`${JSON.stringify(answer)}\n`);
  printed = [];
  expect(await printedBy(keys, ['create', 'CI'], answer)).toBe('ryk_new\nreport: key 1 (CI); it is shown only now\n');
});

test('the note that everybody may use a shared environment now appears with --json too', async () => {
  const uid = 'a'.repeat(22);
  expect(await printedBy(environments, ['share', uid, '--json'], { uid, is_link_shared: true })).toMatch(
    /^\{"uid".*\}\nreport: every person who has the uid may use the environment now/,
  );
});

test('text of the service with line breaks and escape sequences stays on its line', async () => {
  const answer = { uid: '1', name: 'CI\u001b[2J\nryk_forged', key: 'ryk_new' };
  expect(await printedBy(keys, ['create', 'CI'], answer)).toContain('report: key 1 (CI ryk_forged); it is');
});

test('a command that needs a flag fails as wrong usage without one, and sends no request', async () => {
  await expect(printedBy(budget, ['set'])).rejects.toMatchObject({ exitCode: 2 });
  await expect(printedBy(keys, ['create', 'CI', '--kind', 'robot'])).rejects.toThrow('Allowed choices are personal');
  expect(requests).toEqual([]);
});
