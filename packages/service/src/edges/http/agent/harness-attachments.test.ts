import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';
import { maxBytesInRow } from '../../../runs/files/attachments/store.ts';

const service = await openTestService();

test.each([
  ['in its row', 1],
  ['in the blob store', maxBytesInRow + 1],
])('answers a download of a file %s once, and logs no failure after the download', async (_, size) => {
  const whole = 'a'.repeat(size);
  const attachments = [{ file_name: 'a.txt', mime_type: 'text/plain', data: Buffer.from(whole).toString('base64') }];
  const { runToken } = await service.startExecution({ attachments });
  const task = await service.request<{ attachments: { path: string }[] }>('POST', '/harness-support/resolve-prompt', {
    key: runToken,
    body: {},
  });
  const path = task.body.attachments[0]?.path.replace('/api/v1', '') ?? '';
  expect((await service.request('GET', path, { key: runToken })).text).toBe(whole);
  await service.deps.db.query('UPDATE attachments SET mime_type = $1', ['text/plain; name=日本']);
  const odd = await service.request('GET', path, { key: runToken });
  expect([odd.text, odd.headers.get('content-type')]).toEqual([whole, 'application/octet-stream']);
  const part = (range: string) => ({ key: runToken, headers: { range: `bytes=${range}` } });
  const first = await service.request('GET', path, part('0-3'));
  expect([first.status, first.text]).toEqual([206, whole.slice(0, 4)]);
  const behind = await service.problem(416, 'GET', path, part(`${size}-`));
  expect(behind.detail).toContain(`None of its ${size} bytes`);
  expect(service.logged.filter((line) => JSON.parse(line).level >= 50)).toEqual([]);
});
