import { routes } from '@runyard/contract/routes';
import type { Problem } from '@runyard/contract/wire/errors';
import type { Route } from '@runyard/contract/wire/route';
import { expect, test } from 'vitest';
import type { z } from 'zod';
import { isLong } from '../../../../../../test/support/long.ts';
import { makeOwnThings } from '../../../../test/own-things.ts';
import { openTestService } from '../../../../test/service.ts';
import { type KnownMembers, knownMembers } from '../member-names/known-members.ts';

const service = await openTestService();
const { own, requestOf } = await makeOwnThings(service);

/** Matches messages of zod, which do not help users of the API. */
const wordsOfZod =
  /Invalid (input|option|string|number|key|value|discriminator|element|[A-Z]\w*)|Too (small|big)|Unrecognized key|[Ee]xpected .*|received \w+|[<>]=/;

/** Returns a value with all known members down to `depth` levels, and with `leaf` as the value of each innermost member. */
function wrongAt(known: KnownMembers, leaf: unknown, depth: number): unknown {
  if (depth === 0) return leaf;
  if (known.kind === 'object')
    return Object.fromEntries([...known.members].map(([name, inside]) => [name, wrongAt(inside, leaf, depth - 1)]));
  if (known.kind === 'each') return [wrongAt(known.of, leaf, depth - 1)];
  return leaf;
}

const leaves = [
  3,
  -1.5,
  'nothing like this',
  '',
  null,
  [],
  { 'a b': 1 },
  { length: { toString: '' } },
  'x'.repeat(5000),
];
const routesWith = (part: 'body' | 'query') =>
  (Object.entries(routes) as [string, Route][])
    .filter(([, route]) => route[part])
    .map(([name, route], index) => [name, route, index] as const);
/**
 * Returns whether the route with this index is tested in this way. Each route is tested in only one of `count` ways, in turn.
 * `bin/test-long` tests each route in every way.
 */
const isTurn = (index: number, way: number, count: number) => isLong || index % count === way;
const keyOf = (route: Route) => ('run' in route.allow ? own.runToken : service.key);

/** Expects that a refusal describes each fault in the service's own words, and not in the words of the library. */
async function expectOwnWords(name: string, route: Route, asked: { path: string; body?: unknown }): Promise<number> {
  const { options } = requestOf(name, route);
  const answer = await service.request(route.method, asked.path, {
    key: keyOf(route),
    ...options,
    ...(asked.body === undefined ? {} : { body: asked.body }),
  });
  expect(answer.status, JSON.stringify(asked).slice(0, 500)).toBeLessThan(500);
  if (answer.status !== 400) return 0;
  const { errors = [], detail = '' } = answer.body as Problem;
  for (const message of [detail, ...errors.map((each) => each.message)]) {
    expect(message, JSON.stringify(asked).slice(0, 500)).not.toMatch(wordsOfZod);
    expect(message).not.toBe('');
  }
  return errors.length;
}

test.each(routesWith('body'))('%s describes wrong bodies in plain words', async (name, route, index) => {
  const { path } = requestOf(name, route);
  const known = knownMembers(route.body as z.ZodType);
  let faults = await expectOwnWords(name, route, { path, body: [] });
  for (const [place, leaf] of leaves.entries())
    for (const depth of [1, 2, 3]) {
      if (!isTurn(index + place, depth - 1, 3)) continue;
      const body = wrongAt(known, leaf, depth);
      faults += await expectOwnWords(name, route, { path, body: typeof body === 'object' ? (body ?? {}) : {} });
    }
  expect(faults).toBeGreaterThan(0);
});

test.each(routesWith('query'))('%s describes wrong parameters in plain words', async (name, route, index) => {
  const base = requestOf(name, route).path.split('?')[0] ?? '';
  const names = Object.keys((route.query as z.ZodObject).shape);
  for (const [place, value] of ['nothing', '', '-1', '99999999', '1.5', 'a&='].entries())
    for (const parameter of names)
      for (const [way, query] of [`${parameter}=${value}`, `${parameter}=${value}&${parameter}=${value}`].entries())
        if (isTurn(index + place, way, 2) && !/follow|wait/.test(parameter))
          await expectOwnWords(name, route, { path: `${base}?${query}` });
});

test('the faults of a body name the choices, the nearest choice and the missing member', async () => {
  const body = { config: { approval_policy: 'asks', harness: 'oz' }, attachments: [{ file_name: 3 }], mode: 'plans' };
  const { errors } = await service.problem(400, 'POST', '/agent/runs', { body });
  const messages = Object.fromEntries((errors ?? []).map(({ path, message }) => [path, message]));
  expect(messages).toMatchObject({
    'config.approval_policy':
      'must be ask (the run waits, BLOCKED, for a person), auto-approve (the default) or auto-deny',
    'config.harness': 'must be an object, not a string',
    'attachments.0.file_name': 'must be a string, not a number',
    'attachments.0.data': 'is required',
    mode: 'must be one of normal, plan, orchestrate; did you mean plan?',
  });
  const { detail } = await service.problem(400, 'GET', '/agent/runs?limit=many');
  expect(detail).toBe('limit: must be a whole number');
});
