import { routes } from '@runyard/contract/routes';
import { checksNames, type Route } from '@runyard/contract/wire/route';
import { describe, expect, test } from 'vitest';
import { makeOwnThings } from '../../../../test/own-things.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { own, requestOf } = await makeOwnThings(service);
const strict = { prefer: 'handling=strict' };

const create = (body: unknown, headers: Record<string, string> = {}) =>
  service.request<{ run_id: string }>('POST', '/agent/runs', { body, headers });
const refused = (body: unknown, headers: Record<string, string> = {}) =>
  service.problem(400, 'POST', '/agent/runs', { body, headers });

describe('a create', () => {
  test('with a misspelt member is refused with the suggestion, and creates nothing', async () => {
    const count = async () => (await service.deps.db.query('SELECT id FROM runs')).length;
    const before = await count();
    const problem = await refused({ prompt: 'a', config: { approvalPolicy: 'ask' } });
    expect(problem.errors).toEqual([
      { path: 'config.approvalPolicy', message: 'is not a known name; did you mean approval_policy?' },
    ]);
    expect(problem.detail).toBe('config.approvalPolicy: is not a known name; did you mean approval_policy?');
    expect(await count()).toBe(before);
  });

  test('with a misspelt prompt gets the fault of the spelling before the fault of the missing prompt', async () => {
    expect((await refused({ promt: 'a' })).errors?.map(({ path }) => path)).toEqual(['promt', 'prompt']);
  });

  test('gets the names of other unknown members in X-Ignored-Fields, and unknown members of its configuration are stored', async () => {
    const config = {
      harness: { colour: 'red' },
      newer_member: 'r',
      mcp_servers: { a: { command: 'x', type: 'stdio' } },
    };
    const made = await create({ prompt: 'a', 'é "q"': 1, config });
    expect(made.status).toBe(200);
    expect(made.headers.get('x-ignored-fields')).toBe(
      '%"%c3%a9%20%22q%22", "config.harness.colour", "config.newer_member", "config.mcp_servers.a.type"',
    );
    expect(made.headers.get('preference-applied')).toBeNull();
    const run = await service.request('GET', `/agent/runs/${made.body.run_id}`);
    expect(run.body).toMatchObject({ agent_config: { newer_member: 'r' } });
    expect(run.headers.get('x-ignored-fields')).toBeNull();
  });

  test('gets the names of at most 20 unknown members, each with at most 100 characters', async () => {
    const unknown = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`${'x'.repeat(200)}${index}`, index]));
    const header = (await create({ prompt: 'a', ...unknown })).headers.get('x-ignored-fields') ?? '';
    expect(header.split(', ')).toHaveLength(21);
    expect(header.split(', ').at(-1)).toBe('more');
    expect(header.length).toBeLessThan(20 * 104 + 10);
  });

  test('with Prefer: handling=strict is refused for each unknown member', async () => {
    const problem = await refused({ prompt: 'a', colour: 1, approval_policy: 'ask' }, strict);
    expect(problem.errors).toEqual([
      {
        path: 'colour',
        message: expect.stringMatching(/^is not a known name here; leave it out; known names: prompt, .*\bconfig\b/),
      },
      { path: 'approval_policy', message: 'is not a known name here; it belongs in config' },
    ]);
    const made = await create({ prompt: 'a', metadata: { colour: 'red' } }, strict);
    expect(made.status).toBe(200);
    expect(made.headers.get('preference-applied')).toBe('handling=strict');
  });

  test.each([
    ['respond-async, Handling="strict"; x=1', 400],
    ['handling=lenient, handling=strict', 200],
    ['handling=stricter', 200],
  ])('reads Prefer: %s as RFC 7240 defines: %i', async (prefer, status) => {
    expect((await create({ prompt: 'a', colour: 1 }, { prefer })).status).toBe(status);
  });
});

describe('a list', () => {
  test('with a misspelt parameter is refused, and the answer lists other unknown parameters', async () => {
    const problem = await service.problem(400, 'GET', '/agent/runs?sortBy=title&metdata[a]=b');
    expect(problem.errors?.map(({ message }) => message)).toEqual([
      'is not a known name; did you mean sort_by?',
      'is not a known name; did you mean metadata?',
    ]);
    const answer = await service.request('GET', '/agent/runs?utm_source=x&metadata[sortBy]=b&state=QUEUED');
    expect(answer.status).toBe(200);
    expect(answer.headers.get('x-ignored-fields')).toBe('"utm_source"');
  });

  test('lists unknown parameters also if it is a stream', async () => {
    const path = `/agent/runs/${own.runId}/events?follow=false&colour=red`;
    const answer = await service.request('GET', path);
    expect(answer.headers.get('x-ignored-fields')).toBe('"colour"');
    expect(answer.headers.get('x-request-id')).toMatch(/.+/);
  });
});

const all = Object.entries(routes) as [string, Route][];

test.each(all.filter(([, route]) => checksNames(route)))(
  '%s answers 400 for an unknown parameter with Prefer: handling=strict',
  async (name, route) => {
    const { path, options } = requestOf(name, route);
    const asked = `${path}${path.includes('?') ? '&' : '?'}entirely_unknown=1`;
    const key = 'run' in route.allow ? own.runToken : service.key;
    const answer = await service.request(route.method, asked, { key, ...options, headers: strict });
    expect(answer.status).toBe(400);
    expect(answer.headers.get('preference-applied')).toBe('handling=strict');
    expect((answer.body as { errors: unknown[] }).errors).toContainEqual(
      expect.objectContaining({ path: 'entirely_unknown' }),
    );
  },
);

test("names in an agent's reports are not checked, because an agent may be newer than the service", async () => {
  const body = { events: [], Events: [], eventz: [] };
  const path = '/harness-support/events?eventss=1';
  const answer = await service.request('POST', path, { key: own.runToken, body, headers: strict });
  expect(answer.status).toBe(200);
  expect(answer.headers.get('x-ignored-fields')).toBeNull();
  expect(answer.headers.get('preference-applied')).toBeNull();
});

test('a child run with a misspelt approval policy is refused, because a model wrote the request', async () => {
  const body = { prompt: 'a', config: { approvalPolicy: 'ask' } };
  await service.problem(400, 'POST', '/harness-support/child-runs', { key: own.runToken, body });
});
