import { beforeEach, expect, test } from 'vitest';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { createTestDatabase } from '../../../test/database.ts';
import { beginOutage, claimOutageProbes, endOutage } from './outages.ts';
import { readModelChoices } from './team-models.ts';

const database = closeAtEnd(await createTestDatabase());
const { db } = database;
beforeEach(() => db.query('DELETE FROM model_outages'));

const team = '0190a0b0-0000-7000-8000-000000000000';
const outages = async () => (await readModelChoices(db, team)).outages;
const due = () => db.query("UPDATE model_outages SET next_probe_at = clock_timestamp() - interval '1 second'");
const ended = (seconds: number) =>
  db.query("UPDATE model_outages SET ended_at = clock_timestamp() - $1 * interval '1 second'", [seconds]);

test('an outage begins only once, is visible to all processes, and ends only once', async () => {
  const begun = await Promise.all([1, 2, 3].map(() => beginOutage(db, 'anthropic', 'it fails')));
  expect(begun.filter(Boolean)).toHaveLength(1);
  const [outage] = await outages();
  expect(outage).toMatchObject({ provider: 'anthropic', probeInSeconds: 5 });
  if (!outage) throw new Error('no outage');
  expect(
    (await Promise.all([endOutage(db, outage, 'by_request'), endOutage(db, outage, 'by_probe')])).filter(Boolean),
  ).toHaveLength(1);
  expect(await outages()).toEqual([]);
});

test('a provider gets no new outage within 30 s after an outage, and an outage within 10 minutes keeps the interval between probes', async () => {
  await beginOutage(db, 'openai', 'it fails');
  await due();
  await claimOutageProbes(db, ['openai']);
  await ended(5);
  expect(await beginOutage(db, 'openai', 'it fails')).toBe(false);
  await ended(31);
  expect(await beginOutage(db, 'openai', 'it fails')).toBe(true);
  expect((await outages())[0]?.probeInSeconds).toBe(10);
  await ended(601);
  expect(await beginOutage(db, 'openai', 'it fails')).toBe(true);
  expect((await outages())[0]?.probeInSeconds).toBe(5);
});

test.each([
  ['by_request', 20],
  ['by_probe', 5],
] as const)('after an outage that ended %s, the next outage is probed after %i s', async (how, seconds) => {
  await beginOutage(db, 'openai', 'it fails');
  for (let probe = 0; probe < 2; probe++) {
    await due();
    await claimOutageProbes(db, ['openai']);
  }
  const [outage] = await outages();
  expect(outage && (await endOutage(db, outage, how))).toBe(true);
  await ended(31);
  expect(await beginOutage(db, 'openai', 'it fails')).toBe(true);
  expect((await outages())[0]?.probeInSeconds).toBe(seconds);
});

test('a success of a request that was sent before an outage does not end a later outage', async () => {
  await beginOutage(db, 'google', 'it fails');
  const [first] = await outages();
  await ended(31);
  await beginOutage(db, 'google', 'it fails');
  expect(first && (await endOutage(db, first, 'by_request'))).toBe(false);
  expect(await outages()).toHaveLength(1);
});

test('only one of several processes probes a provider, at longer and longer intervals, and only if it has configured the provider', async () => {
  await beginOutage(db, 'local', 'it fails');
  expect(await claimOutageProbes(db, ['local'])).toEqual([]);
  const waits: number[] = [];
  for (let probe = 1; probe <= 8; probe++) {
    await due();
    const claims = await Promise.all([1, 2, 3].map(() => claimOutageProbes(db, ['local', 'google'])));
    expect(claims.flat()).toHaveLength(1);
    waits.push((await outages())[0]?.probeInSeconds ?? 0);
  }
  expect(waits).toEqual([10, 20, 40, 80, 160, 300, 300, 300]);
  await due();
  expect(await claimOutageProbes(db, ['anthropic'])).toEqual([]);
});
