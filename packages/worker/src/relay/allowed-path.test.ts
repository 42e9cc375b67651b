import { expect, test } from 'vitest';
import { allowedTarget } from './relay.ts';

test.each([
  '/api/v1/harness-support/resolve-prompt',
  '/api/v1/harness-support/inbox?wait_ms=25000',
  '/api/v1/gateway/models/google/v1beta/models/gemini-3:streamGenerateContent?alt=sse',
  '/api/v1/gateway/git/octo/hello.git/info/refs?service=git-upload-pack',
  '/api/v1/gateway/a%20b',
  '/api/v1/harness-support/x?next=..%2f..%2f',
])('%s is forwarded unchanged', (target) => {
  expect(allowedTarget(target)).toBe(target);
});

test.each([
  '/',
  '/healthz',
  '/api/v1/agent/runs',
  '/api/v1/harness-support',
  '/api/v1/harness-supportx/y',
  '/API/v1/gateway/x',
  'http://127.0.0.1:22/api/v1/gateway/x',
  '//evil/api/v1/gateway/x',
  '*',
  '/api/v1/gateway/../agent/runs',
  '/api/v1/gateway/./x',
  '/api/v1/gateway/..',
  '/api/v1/gateway//x',
  '/api/v1/gateway/..;/agent/runs',
  '/api/v1/gateway/%2e%2e/agent/runs',
  '/api/v1/gateway/%2E./agent/runs',
  '/api/v1/gateway/..%2fagent/runs',
  '/api/v1/gateway/..%5cagent/runs',
  '/api/v1/gateway/%252e%252e/agent/runs',
  '/api/v1/gateway/\\..\\agent',
  '/api/v1/gateway/x%00',
  '/api/v1/gateway/x%0d%0aHost:y',
  '/api/v1/gateway/x%zz',
  '/api/v1/gateway/x#y',
  '/api/v1/gateway/\u00e9',
  `/api/v1/gateway/${'x'.repeat(9000)}`,
])('%s does not pass', (target) => {
  expect(allowedTarget(target)).toBeUndefined();
});

test('if the URL of the service has a path, a sandbox can request a target with and without this path', () => {
  expect(allowedTarget('/api/v1/gateway/x?y', '/runyard')).toBe('/runyard/api/v1/gateway/x?y');
  expect(allowedTarget('/runyard/api/v1/gateway/x', '/runyard')).toBe('/runyard/api/v1/gateway/x');
  expect(allowedTarget('/other/api/v1/gateway/x', '/runyard')).toBeUndefined();
});
