import { expect, test } from 'vitest';
import { openTestService } from '../../../../service/test/service.ts';
import { runRow } from '../../../test/run-row.ts';
import { type Context, createContext } from '../../context/context.ts';
import { environments } from './environments.ts';

let printed: string[];
const contextOf = (key: string): Context => {
  const env = { RUNYARD_BASE_URL: service.baseUrl, RUNYARD_API_KEY: key };
  const print = (text: string) => void printed.push(text);
  return { ...createContext(env), out: print, report: () => {} };
};
/** Runs the command with the key and returns its output. */
async function printedBy(words: readonly string[], key = service.key): Promise<string> {
  printed = [];
  await runRow(environments, contextOf(key), ...words);
  return printed.join('');
}

const service = await openTestService();
const body = { config: { name: 'Shared' } };
const uid = (await service.request<{ uid: string }>('POST', '/agent/environments', { body })).body.uid;
const [person] = await service.deps.db.query<{ uid: string }>(
  'SELECT u.uid FROM users u JOIN team_members m ON m.user_id = u.id WHERE m.team_id = $1',
  [service.otherTeamId],
);
const guest = person?.uid ?? '';

test('the commands invite, list and remove a guest, and the guest can accept, decline and leave', async () => {
  const asGuest = (...words: string[]) => printedBy(words, service.otherKey);
  const invite = async () => (await printedBy(['guests', 'invite', uid, guest])).trim();
  expect(await printedBy(['guests', 'list', uid, '--json'])).toBe('{"guests":[],"invitations":[]}\n');
  const withdrawn = await invite();
  expect(await printedBy(['guests', 'withdraw', uid, withdrawn])).toContain('withdrawn');
  const declined = await invite();
  expect(await asGuest('invitations', 'decline', declined)).toContain('declined');
  const id = await invite();
  expect(await asGuest('invitations')).toContain(id);
  expect(await asGuest('list')).not.toContain(uid);
  expect(await asGuest('invitations', 'accept', id)).toContain('accepted');
  expect(await printedBy(['guests', 'list', uid])).toContain(guest);
  expect(await asGuest('list')).toContain(uid);
  expect(await printedBy(['guests', 'remove', uid, guest])).toContain('is not a guest');
  expect(await asGuest('list')).not.toContain(uid);
  const again = await invite();
  await asGuest('invitations', 'accept', again);
  expect(await asGuest('leave', uid)).toContain('you are not a guest');
});

test('the commands share an environment by a link and end the sharing', async () => {
  const link = (await printedBy(['share', uid])).trim();
  const read = () => fetch(link, { headers: { authorization: `Bearer ${service.otherKey}` } });
  expect((await read()).status).toBe(200);
  expect(await printedBy(['unshare', uid])).toContain('not shared');
  expect((await read()).status).toBe(404);
});
