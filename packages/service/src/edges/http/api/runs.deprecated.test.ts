import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();

test('POST /agent/run creates a run and declares its deprecation (RFC 9745)', async () => {
  const created = await service.request('POST', '/agent/run', { body: { prompt: 'Say hello' } });
  expect(created.status).toBe(200);
  expect(created.headers.get('deprecation')).toMatch(/^@\d+$/);
  expect(created.headers.get('link')).toBe(`<${service.baseUrl}/api/v1/agent/runs>; rel="successor-version"`);
});
