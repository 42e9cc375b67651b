import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../../service/test/service.ts';
import { type Context, createContext } from '../context.ts';
import { listEnvironments } from './catalogue.ts';
import { addGuest, listGuests, removeGuest, shareEnvironment, unshareEnvironment } from './environments.ts';

let service: TestService;
let uid: string;
let guest: string;
let printed: string[];
const contextOf = (key: string): Context => {
  const env = { RUNYARD_BASE_URL: service.baseUrl, RUNYARD_API_KEY: key };
  const print = (text: string) => void printed.push(text);
  return { ...createContext(env), out: print, report: () => {} };
};
/** Returns what the command printed. */
async function printedBy(command: (context: Context) => Promise<void>, key = service.key): Promise<string> {
  printed = [];
  await command(contextOf(key));
  return printed.join('');
}

beforeAll(async () => {
  service = await startTestService();
  const body = { config: { name: 'Shared' } };
  uid = (await service.request<{ uid: string }>('POST', '/agent/environments', { body })).body.uid;
  const [person] = await service.deps.db.query<{ uid: string }>(
    'SELECT u.uid FROM users u JOIN team_members m ON m.user_id = u.id WHERE m.team_id = $1',
    [service.otherTeamId],
  );
  guest = person?.uid ?? '';
});
afterAll(() => service.close());

test('admits, lists and removes a guest', async () => {
  expect(await printedBy((context) => listGuests(context, uid, { json: true }))).toBe('{"guests":[]}\n');
  expect(await printedBy((context) => addGuest(context, uid, guest, {}))).toBe(`${guest} may use ${uid}\n`);
  expect(await printedBy((context) => listGuests(context, uid, {}))).toContain(guest);
  expect(await printedBy((context) => listEnvironments(context, {}), service.otherKey)).toContain(uid);
  expect(await printedBy((context) => removeGuest(context, uid, guest))).toContain('no guest');
  expect(await printedBy((context) => listEnvironments(context, {}), service.otherKey)).not.toContain(uid);
});

test('shares an environment by its link, and ends that', async () => {
  const link = (await printedBy((context) => shareEnvironment(context, uid, {}))).trim();
  const read = () => fetch(link, { headers: { authorization: `Bearer ${service.otherKey}` } });
  expect((await read()).status).toBe(200);
  expect(await printedBy((context) => unshareEnvironment(context, uid))).toContain('not shared');
  expect((await read()).status).toBe(404);
});
