import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../../service/test/service.ts';
import { type Context, createContext } from '../context.ts';
import {
  answerInvitation,
  inviteGuest,
  leaveEnvironment,
  listEnvironments,
  listGuests,
  listInvitations,
  removeGuest,
  shareEnvironment,
  unshareEnvironment,
  withdrawGuest,
} from './environments.ts';

let service: TestService;
let uid: string;
let guest: string;
let printed: string[];
const contextOf = (key: string): Context => {
  const env = { RUNYARD_BASE_URL: service.baseUrl, RUNYARD_API_KEY: key };
  const print = (text: string) => void printed.push(text);
  return { ...createContext(env), out: print, report: () => {} };
};
/** Runs the command with the key and returns its output. */
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

test('the commands invite, list and remove a guest, and the guest can accept, decline and leave', async () => {
  const asGuest = (command: (context: Context) => Promise<void>) => printedBy(command, service.otherKey);
  const invite = async () => (await printedBy((context) => inviteGuest(context, uid, guest, {}))).trim();
  expect(await printedBy((context) => listGuests(context, uid, { json: true }))).toBe(
    '{"guests":[],"invitations":[]}\n',
  );
  const withdrawn = await invite();
  expect(await printedBy((context) => withdrawGuest(context, uid, withdrawn))).toContain('withdrawn');
  const declined = await invite();
  expect(await asGuest((context) => answerInvitation(context, declined, false))).toContain('declined');
  const id = await invite();
  expect(await asGuest((context) => listInvitations(context, {}))).toContain(id);
  expect(await asGuest((context) => listEnvironments(context, {}))).not.toContain(uid);
  expect(await asGuest((context) => answerInvitation(context, id, true))).toContain('accepted');
  expect(await printedBy((context) => listGuests(context, uid, {}))).toContain(guest);
  expect(await asGuest((context) => listEnvironments(context, {}))).toContain(uid);
  expect(await printedBy((context) => removeGuest(context, uid, guest))).toContain('no guest');
  expect(await asGuest((context) => listEnvironments(context, {}))).not.toContain(uid);
  const again = await invite();
  await asGuest((context) => answerInvitation(context, again, true));
  expect(await asGuest((context) => leaveEnvironment(context, uid))).toContain('no guest');
});

test('the commands share an environment by a link and end the sharing', async () => {
  const link = (await printedBy((context) => shareEnvironment(context, uid, {}))).trim();
  const read = () => fetch(link, { headers: { authorization: `Bearer ${service.otherKey}` } });
  expect((await read()).status).toBe(200);
  expect(await printedBy((context) => unshareEnvironment(context, uid))).toContain('not shared');
  expect((await read()).status).toBe(404);
});
