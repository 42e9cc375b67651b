import { expect, test } from 'vitest';
import { openTestService } from '../../../test/service.ts';

const service = await openTestService();

test('answers a download once and logs no failure after it', async () => {
  const attachments = [{ file_name: 'a.txt', mime_type: 'text/plain', data: 'YQ==' }];
  const { runToken } = await service.startExecution({ attachments });
  const task = await service.request<{ attachments: { path: string }[] }>('POST', '/harness-support/resolve-prompt', {
    key: runToken,
    body: {},
  });
  const path = task.body.attachments[0]?.path.replace('/api/v1', '') ?? '';
  expect((await service.request('GET', path, { key: runToken })).text).toBe('a');
  await service.deps.db.query('UPDATE attachments SET mime_type = $1', ['text/plain; name=日本']);
  const odd = await service.request('GET', path, { key: runToken });
  expect([odd.text, odd.headers.get('content-type')]).toEqual(['a', 'application/octet-stream']);
  const part = (range: string) => ({ key: runToken, headers: { range: `bytes=${range}` } });
  expect((await service.request('GET', path, part('0-3'))).status).toBe(206);
  expect((await service.problem(416, 'GET', path, part('5-'))).detail).toContain('None of its 1 bytes');
  expect(service.logged.filter((line) => JSON.parse(line).level >= 50)).toEqual([]);
});
