import { expect, test } from 'vitest';
import { environmentUid, pickNamed, scheduleId } from './named.ts';

const kind = { one: 'webhook', several: 'webhooks', list: 'webhooks list' };
const things = [
  { id: 'one', name: 'alerts' },
  { id: 'two', name: 'twice' },
  { id: 'three', name: 'twice' },
  { id: 'alerts', name: 'named by an id' },
];

test.each([
  ['one', 'one'],
  ['named by an id', 'alerts'],
  ['alerts', 'alerts'],
])('pickNamed returns for %j the thing %s, and an id has priority over a name', (wanted, id) => {
  expect(pickNamed(things, wanted, kind).id).toBe(id);
});

test.each([
  ['twice', /^several webhooks are called "twice"; give the id of one:\n {2}two {2}twice\n {2}three {2}twice$/],
  ['Alert', /^there is no webhook "Alert"\. List them with: bin\/runyard webhooks list\n {2}one {2}alerts\n/],
  ['\u001b[1m', /^there is no webhook ""/],
])('the error of pickNamed for %j lists the candidates', (wanted, message) => {
  expect(() => pickNamed(things, wanted, kind)).toThrow(message);
});

test('idOf sends a request for a name, but not for an id', async () => {
  const never = async () => {
    throw new Error('asked');
  };
  const uid = 'a'.repeat(22);
  const id = '0198d3b1-7c5e-7c61-9a0b-1f2e3d4c5b6a';
  expect(await environmentUid({ listEnvironments: never }, uid)).toBe(uid);
  expect(await scheduleId({ listSchedules: never }, id.toUpperCase())).toBe(id);
  const listEnvironments = async () => ({ environments: [{ uid, config: { name: 'Build' } }] }) as never;
  expect(await environmentUid({ listEnvironments }, 'Build')).toBe(uid);
});
