import { randomUUIDv7 } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();

const countRuns = async () => Number((await service.deps.db.query('SELECT count(*) FROM runs'))[0]?.count);

async function refusedWith(status: number, body: unknown, path?: string) {
  const before = await countRuns();
  const problem = await service.problem(status, 'POST', '/agent/runs', { body });
  expect(await countRuns()).toBe(before);
  if (path !== undefined) expect(problem.errors?.map((error) => error.path)).toContain(path);
  return problem;
}

test('POST /agent/runs answers 403 for the environment of another team as for an unknown one', async () => {
  const theirs = await service.request<{ uid: string }>('POST', '/agent/environments', {
    body: { config: { name: 'Theirs' } },
    key: service.otherKey,
  });
  const answers = await Promise.all(
    ['A'.repeat(22), theirs.body.uid].map((environment_id) =>
      service.problem(403, 'POST', '/agent/runs', { body: { prompt: 'a', config: { environment_id } } }),
    ),
  );
  const [unknown, foreign] = answers.map(({ trace_id: _, ...rest }) => rest);
  expect(unknown).toMatchObject({
    error_code: 'not_authorized',
    detail: expect.stringMatching(/^config\.environment_id: /),
  });
  expect(foreign).toEqual(unknown);
});

describe('POST /agent/runs answers 400 and creates nothing', () => {
  test("for a child with more than 20 metadata keys together with its parent's", async () => {
    const metadata = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`k${n}`, 'parent']));
    const parent_run_id = await service.newRun({ metadata });
    await refusedWith(400, { prompt: 'a', parent_run_id, metadata: { one: 'more' } }, 'metadata');
    await service.newRun({ parent_run_id, metadata: { k0: 'child' } });
  });

  test.each([
    ['a missing prompt', {}, 'prompt'],
    ['a blank prompt', { prompt: ' \n' }, 'prompt'],
    ['a prompt of a wrong type', { prompt: 7 }, 'prompt'],
    ['a NUL in the prompt', { prompt: 'a\u0000b' }, 'prompt'],
    ['a NUL in a member that it does not know', { prompt: 'a', config: { x: { y: ['\u0000'] } } }, 'config.x.y.0'],
    ['half of a surrogate pair', { prompt: 'a\ud800' }, 'prompt'],
    ['a prompt over 1 MB', { prompt: 'é'.repeat(512 * 1024 + 1) }, 'prompt'],
    ['a configuration of a wrong type', { prompt: 'a', config: [] }, 'config'],
    ['an unknown model', { prompt: 'a', config: { model_id: 'nope' } }, 'config.model_id'],
    ['a model that is not configured', { prompt: 'a', config: { model_id: 'claude-sonnet-5-5' } }, 'config.model_id'],
    ['a worker whose name none can have', { prompt: 'a', config: { worker_host: 'a b' } }, 'config.worker_host'],
    ['a worker with too long a name', { prompt: 'a', config: { worker_host: 'a'.repeat(64) } }, 'config.worker_host'],
    ['an unknown harness', { prompt: 'a', config: { harness: { type: 'nope' } } }, 'config.harness.type'],
    ['a preset without a language model', { prompt: 'a', config: { harness: { type: 'codex' } } }, 'config.model_id'],
    [
      'a policy that the harness cannot keep',
      { prompt: 'a', config: { approval_policy: 'ask', harness: { type: 'command', command: ['cat'] } } },
      'config.approval_policy',
    ],
    [
      'a variable that the preset sets itself',
      { prompt: 'a', config: { harness: { type: 'claude', env: { ANTHROPIC_BASE_URL: 'http://x' } } } },
      'config.harness.env.ANTHROPIC_BASE_URL',
    ],
    [
      'a variable that the agent needs',
      { prompt: 'a', config: { harness: { type: 'acp', command: ['a'], env: { HOME: '/' } } } },
      'config.harness.env',
    ],
    [
      'the harness command without its command',
      { prompt: 'a', config: { harness: { type: 'command' } } },
      'config.harness.command',
    ],
    [
      'a policy that a command cannot keep',
      { prompt: 'a', config: { approval_policy: 'auto-deny', harness: { type: 'command', command: ['a'] } } },
      'config.approval_policy',
    ],
    [
      'the harness acp without its command',
      { prompt: 'a', config: { harness: { type: 'acp' } } },
      'config.harness.command',
    ],
    [
      'an MCP server with command and url',
      { prompt: 'a', config: { mcp_servers: { x: { command: 'a', url: 'http://b' } } } },
      'config.mcp_servers.x',
    ],
    ['an MCP server with neither', { prompt: 'a', config: { mcp_servers: { x: {} } } }, 'config.mcp_servers.x'],
    ['a malformed environment id', { prompt: 'a', config: { environment_id: 'short' } }, 'config.environment_id'],
    ['an unknown parent', { prompt: 'a', parent_run_id: '01900000-0000-7000-8000-000000000000' }, 'parent_run_id'],
    ['a parent that is no id', { prompt: 'a', parent_run_id: 'x' }, 'parent_run_id'],
    ['an unknown conversation', { prompt: 'a', conversation_id: 'x' }, 'conversation_id'],
    ['a skill without a repository', { skill: 's' }, 'skill'],
    ['skill_spec together with skills', { prompt: 'a', config: { skill_spec: 'a', skills: ['b'] } }, 'config.skills'],
    [
      'an idle timeout over 60 minutes',
      { prompt: 'a', config: { idle_timeout_minutes: 61 } },
      'config.idle_timeout_minutes',
    ],
    ['a metadata key with a space', { prompt: 'a', metadata: { 'a b': 'c' } }, 'metadata.a b'],
    ['a metadata value over 256 bytes', { prompt: 'a', metadata: { a: 'é'.repeat(129) } }, 'metadata.a'],
    [
      '21 metadata keys',
      { prompt: 'a', metadata: Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`k${i}`, ''])) },
      'metadata',
    ],
    [
      'an attachment that is no base64',
      { prompt: 'a', attachments: [{ file_name: 'a', mime_type: 'text/plain', data: 'a b=' }] },
      'attachments.0.data',
    ],
    ...['text/plain; name=日本', 'text/plain\n; a=b', 'text', 'text/plain; a=\u007f'].map(
      (type): [string, object, string] => [
        `an attachment of the type ${JSON.stringify(type)}`,
        { prompt: 'a', attachments: [{ file_name: 'a', mime_type: type, data: '' }] },
        'attachments.0.mime_type',
      ],
    ),
    [
      'six attachments',
      {
        prompt: 'a',
        attachments: Array.from({ length: 6 }, () => ({ file_name: 'a', mime_type: 'text/plain', data: '' })),
      },
      'attachments',
    ],
  ])('for %s', async (_, body, path) => {
    const problem = await refusedWith(400, body, path);
    expect(problem).toMatchObject({ error_code: 'invalid_request', retryable: false, instance: '/api/v1/agent/runs' });
    expect(problem.error).toBe(`${problem.title} (${problem.detail})`);
  });

  test('for an attachment over 10 MB', async () => {
    const data = Buffer.alloc(10 * 1024 * 1024 + 1).toString('base64');
    await refusedWith(
      400,
      { prompt: 'a', attachments: [{ file_name: 'a', mime_type: 'text/plain', data }] },
      'attachments.0.data',
    );
  });

  test('for runs nested deeper than 5', async () => {
    let parent = await service.newRun();
    for (let depth = 1; depth <= 5; depth += 1) parent = await service.newRun({ parent_run_id: parent });
    await refusedWith(400, { prompt: 'a', parent_run_id: parent }, 'parent_run_id');
  });

  test.each([
    ['no JSON', '{"prompt": '],
    ['a body that is no object', '"prompt"'],
    ['an empty body', ''],
    ['__proto__ as a name', '{"prompt":"a","config":{"__proto__":{"x":1}}}'],
    ['more values than a request needs', JSON.stringify({ prompt: 'a', x: Array(20_000).fill(1) })],
    ['nesting without end', `{"prompt":"a","x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
  ])('for %s', async (_, raw) => {
    await service.problem(400, 'POST', '/agent/runs', { raw, headers: { 'content-type': 'application/json' } });
  });

  test('for an invalid Idempotency-Key', async () => {
    await service.problem(400, 'POST', '/agent/runs', { body: { prompt: 'a' }, headers: { 'idempotency-key': 'a b' } });
  });
});

describe('POST /agent/runs answers', () => {
  test('409 for a child of a cancelled run, until the parent is continued', async () => {
    const parent = await service.newRun();
    await service.request('POST', `/agent/runs/${parent}/cancel`);
    const body = { prompt: 'a', parent_run_id: parent };
    const headers = { 'idempotency-key': randomUUIDv7() };
    const problem = await service.problem(409, 'POST', '/agent/runs', { body, headers });
    expect(problem).toMatchObject({ error_code: 'conflict', detail: expect.stringContaining('cancelled') });
    await service.request('POST', `/agent/runs/${parent}/followups`, { body: { message: 'Go on.' } });
    expect((await service.request('POST', '/agent/runs', { body, headers })).status).toBe(200);
  });

  test('403 for an environment of another team', async () => {
    const createdEnvironment = await service.request<{ uid: string }>('POST', '/agent/environments', {
      key: service.otherKey,
      body: { config: { name: 'Theirs' } },
    });
    const problem = await refusedWith(403, { prompt: 'a', config: { environment_id: createdEnvironment.body.uid } });
    expect(problem.error_code).toBe('not_authorized');
  });

  test('403 not_authorized for on_behalf_of with a personal key', async () => {
    expect((await refusedWith(403, { prompt: 'a', on_behalf_of: 'u' })).error_code).toBe('not_authorized');
  });

  test('409 for an Idempotency-Key with another body', async () => {
    const headers = { 'idempotency-key': 'key-3' };
    await service.request('POST', '/agent/runs', { body: { prompt: 'One' }, headers });
    const problem = await service.problem(409, 'POST', '/agent/runs', { body: { prompt: 'Two' }, headers });
    expect(problem.error_code).toBe('conflict');
  });

  test('400 that explains the allowed names of metadata', async () => {
    const problem = await refusedWith(400, { prompt: 'a', metadata: { 'a b': 'c' } });
    expect(problem.errors).toEqual([{ path: 'metadata.a b', message: 'must be 1 to 64 characters of [a-zA-Z0-9._-]' }]);
  });
});
