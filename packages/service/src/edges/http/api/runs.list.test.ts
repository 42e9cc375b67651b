import { ListRunsResponse } from '@runyard/contract/runs/runs';
import { beforeEach, describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
beforeEach(async () => {
  await service.deps.db.query('DELETE FROM runs');
});

const list = async (query: string | Record<string, string>) =>
  ListRunsResponse.parse(await service.ok('GET', `/agent/runs?${new URLSearchParams(query)}`));
const titles = async (query: string | Record<string, string>) => (await list(query)).runs.map(({ title }) => title);

describe('the filter q', () => {
  beforeEach(async () => {
    await service.newRun({
      title: 'Repair the flaky login test',
      prompt: 'It fails in CI.\n\nLook at src/auth/session_store.ts first.',
    });
    await service.newRun({
      title: 'Dependencies',
      prompt: 'Renovate everything',
      config: { skill_spec: 'acme/tools:skills/upgrade/SKILL.md' },
    });
    await service.newRun({ title: 'Ошибка входа', prompt: 'Проверь журнал' });
  });

  test.each([
    ['words of the title in any order and case', 'LOGIN flaky', ['Repair the flaky login test']],
    ['a word of the prompt', 'fails', ['Repair the flaky login test']],
    ['the beginning of a word of the prompt', 'renov', ['Dependencies']],
    ['a part of a path in the prompt', 'session_store.ts', ['Repair the flaky login test']],
    ['the middle of a word of the title', 'pende', ['Dependencies']],
    ['the skill', 'acme/tools', ['Dependencies']],
    ['words of title and prompt together', 'dependencies everything', ['Dependencies']],
    ['letters that are not Latin, in any case', 'ОШИБКА жур', ['Ошибка входа']],
    ['a misspelt word of the title, where nothing has it as it is', 'flakey', ['Repair the flaky login test']],
    ['a misspelt word of the skill', 'upgrede', ['Dependencies']],
  ])('finds %s', async (_, q, found) => {
    expect(await titles({ q })).toEqual(found);
  });

  test.each([
    ['one of the words is missing', 'login everything'],
    ['the middle of a word of the prompt is given', 'verythin'],
    ['there is no letter or digit in it', '_ %'],
    ['it is SQL, a pattern or a query of words', `' | !a:* & \\ OR 1=1 --`],
  ])('finds nothing if %s', async (_, q) => {
    expect(await titles({ q })).toEqual([]);
  });

  test('ignores a blank query', async () => {
    expect((await list({ q: ' ' })).runs).toHaveLength(3);
  });

  test('finds a word in the first 4,000 characters of the prompt only', async () => {
    await service.newRun({ title: 'Long', prompt: `${'x '.repeat(1990)}nearend ${'y '.repeat(100)}behind` });
    expect([await titles('q=nearend'), await titles('q=behind')]).toEqual([['Long'], []]);
  });

  test('pages through similar words without repeating a run', async () => {
    for (let i = 0; i < 3; i += 1) await service.newRun({ title: `A flaky build ${i}` });
    const seen: string[] = [];
    let cursor = '';
    do {
      const page = await list({
        q: 'flakey',
        limit: '1',
        sort_by: 'title',
        sort_order: 'asc',
        ...(cursor ? { cursor } : {}),
      });
      seen.push(...page.runs.map(({ title }) => title));
      cursor = page.page_info.next_cursor ?? '';
      // Now a run contains the exact word. The further pages of the earlier list must not switch to exact matches.
      if (seen.length === 1) await service.newRun({ title: 'flakey indeed' });
    } while (cursor);
    expect(seen).toEqual([
      'A flaky build 0',
      'A flaky build 1',
      'A flaky build 2',
      'Repair the flaky login test',
      'flakey indeed',
    ]);
    expect(await titles('q=flakey')).toEqual(['flakey indeed']);
  });

  test('finds a run by its changed title', async () => {
    await service.deps.db.query(`UPDATE runs SET title = title || ' and archive it' WHERE title = 'Dependencies'`);
    expect(await titles('q=archive')).toEqual(['Dependencies and archive it']);
  });
});

describe('the filter metadata', () => {
  test('answers 403 feature_not_available if the team has disabled the filter; automation_id still works', async () => {
    await service.newRun({ title: 'A', metadata: { automation_id: 'x' } });
    await service.deps.db.query('UPDATE teams SET metadata_filters_enabled = false WHERE id = $1', [service.teamId]);
    try {
      const problem = await service.problem(403, 'GET', '/agent/runs?metadata[automation_id]=x');
      expect(problem).toMatchObject({ error_code: 'feature_not_available', retryable: false });
      expect(await titles('automation_id=x')).toEqual(['A']);
      await service.ok('GET', '/agent/runs?metadata[a]=b', { key: service.otherKey });
    } finally {
      await service.deps.db.query('UPDATE teams SET metadata_filters_enabled = true');
    }
  });

  test('matches values exactly: it distinguishes upper and lower case, and accepts empty values, values with equal signs and five pairs', async () => {
    const metadata = { a: 'X', b: '', c: 'k=v', d: 'ü', e: '%' };
    await service.newRun({ title: 'All', metadata });
    await service.newRun({ title: 'Part', metadata: { a: 'X' } });
    const pairs = (from: Record<string, string>) =>
      Object.fromEntries(Object.entries(from).map(([key, value]) => [`metadata[${key}]`, value]));
    expect(await titles(pairs(metadata))).toEqual(['All']);
    expect(await titles(pairs({ a: 'X' }))).toEqual(['Part', 'All']);
    for (const other of [{ a: 'x' }, { a: 'X', b: ' ' }, { 'c=k': 'v' }, { A: 'X' }]) {
      expect(await titles(pairs(other)), JSON.stringify(other)).toEqual([]);
    }
  });
});

describe('the filter ancestor_run_id', () => {
  test('finds runs at any depth, with an id in upper or lower case', async () => {
    const root = await service.newRun({ title: 'root' });
    const child = await service.newRun({ title: 'child', parent_run_id: root });
    await service.newRun({ title: 'grandchild', parent_run_id: child });
    await service.newRun({ title: 'stranger' });
    expect(await titles(`ancestor_run_id=${root.toUpperCase()}`)).toEqual(['grandchild', 'child']);
    expect(await titles(`ancestor_run_id=${child}`)).toEqual(['grandchild']);
  });

  test("answers 400 for an unknown run and for another team's run", async () => {
    const other = await service.newRun({}, service.otherKey);
    for (const id of [other, '019d8a5c-7d43-7c1e-9a51-2f6d0f6a1b11', 'x']) {
      const problem = await service.problem(400, 'GET', `/agent/runs?ancestor_run_id=${id}`);
      expect(problem.errors?.map(({ path }) => path)).toEqual(['ancestor_run_id']);
    }
  });
});

describe('the filter artifact_type', () => {
  test('finds a run as soon as an artifact is ready, and until its last artifact is removed', async () => {
    const { db } = service.deps;
    const id = await service.newRun({ title: 'A' });
    const add = (ready: boolean) =>
      db.query<{ id: string }>(
        `INSERT INTO artifacts (id, team_id, run_id, execution_id, conversation_id, artifact_type, data, is_ready)
         VALUES (gen_random_uuid(), $1, $2, $2, $2, 'EXTERNAL_REFERENCE', $4, $3) RETURNING id`,
        [service.teamId, id, ready, JSON.stringify({ reference_type: 'ticket', url: 'https://t.example/1' })],
      );
    const [first] = await add(false);
    expect(await titles('artifact_type=EXTERNAL_REFERENCE')).toEqual([]);
    await db.query('UPDATE artifacts SET is_ready = true WHERE id = $1', [first?.id]);
    await add(true);
    expect(await titles('artifact_type=EXTERNAL_REFERENCE')).toEqual(['A']);
    await db.query('DELETE FROM artifacts WHERE id = $1', [first?.id]);
    expect(await titles('artifact_type=EXTERNAL_REFERENCE')).toEqual(['A']);
    await db.query('DELETE FROM artifacts');
    expect(await titles('artifact_type=EXTERNAL_REFERENCE')).toEqual([]);
  });
});

test('a filter by several states keeps the order of the list', async () => {
  const { db } = service.deps;
  for (const title of ['0', '1', '2', '3']) await service.newRun({ title });
  await db.query(`UPDATE runs SET state = 'FAILED' WHERE title IN ('0', '2')`);
  expect(await titles('state=FAILED&state=QUEUED&state=FAILED')).toEqual(['3', '2', '1', '0']);
  expect(await titles('state=FAILED&state=ERROR')).toEqual(['2', '0']);
});

describe('a filter by time', () => {
  const created = async () => {
    const id = await service.newRun();
    await service.deps.db.query(`UPDATE runs SET created_at = '2026-03-01T10:00:00.123456Z'`);
    return id;
  };

  test.each([
    ['in UTC, to the microsecond', '2026-03-01T10:00:00.123455Z', '2026-03-01T10:00:00.123457Z'],
    ['with an offset that PostgreSQL does not know', '2026-03-02T09:59:00.123455+23:59', '2026-02-28T10:01:01-23:59'],
    ['in lower case', '2026-03-01t10:00:00z', '2026-03-01t10:00:01z'],
    ['with a fraction of a hundred digits', `2026-03-01T10:00:00.${'1'.repeat(100)}Z`, '2026-03-01T10:00:00.2Z'],
    ['at the ends of the calendar', '0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999999999Z'],
  ])('accepts %s', async (_, before, after) => {
    await created();
    const found = async (query: Record<string, string>) => (await list(query)).runs.length;
    expect(await found({ created_after: before, created_before: after })).toBe(1);
    expect(await found({ created_after: after })).toBe(0);
    expect(await found({ created_before: before })).toBe(0);
  });

  test.each([
    '0000-01-01T00:00:00Z',
    '0001-01-01T00:00:00+23:59',
    '9999-12-31T23:59:59-00:01',
    '2026-02-30T00:00:00Z',
    '2026-01-01',
    '2026-01-01T00:00:00',
    '2026-01-01T00:00:00+24:00',
    'now',
  ])('refuses %s', async (time) => {
    for (const name of ['created_after', 'created_before', 'updated_after']) {
      const problem = await service.problem(400, 'GET', `/agent/runs?${new URLSearchParams({ [name]: time })}`);
      expect(problem.errors?.[0]?.path).toBe(name);
    }
  });
});

test('a page of runs ends at 16 MB, and the next page continues after it', async () => {
  const long = 'x'.repeat(1024 * 1024);
  const made: string[] = [];
  for (let i = 0; i < 20; i += 1) {
    made.push(
      await service.newRun({ title: 'Long', prompt: long, config: { base_prompt: i % 2 ? long.slice(1000) : '' } }),
    );
  }
  for (const query of ['limit=500&sort_by=created_at', 'limit=15&q=long']) {
    const seen: string[] = [];
    let cursor = '';
    do {
      const answer = await service.request('GET', `/agent/runs?${query}${cursor && `&cursor=${cursor}`}`);
      expect(answer.text.length).toBeLessThan(17 * 1024 * 1024);
      const { runs, page_info } = ListRunsResponse.parse(answer.body);
      expect(runs.length).toBeGreaterThan(5);
      seen.push(...runs.map(({ run_id }) => run_id));
      cursor = encodeURIComponent(page_info.next_cursor ?? '');
    } while (cursor);
    expect(seen).toEqual(made.toReversed());
  }
});
