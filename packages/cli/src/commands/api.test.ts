import { expect, test } from 'vitest';
import { urlOf } from './api.ts';

const origin = 'http://127.0.0.1:4180';
test.each([
  ['/agent/runs?limit=1', '/api/v1/agent/runs?limit=1'],
  ['agent/runs', '/api/v1/agent/runs'],
  ['/api/v1/agent/runs', '/api/v1/agent/runs'],
  ['/healthz', '/healthz'],
  ['//evil.example/x', '/api/v1//evil.example/x'],
  ['https://evil.example/x', '/api/v1/https://evil.example/x'],
  ['@evil.example/x', '/api/v1/@evil.example/x'],
  ['/../../healthz', '/healthz'],
])('sends %j to the service', (path, expected) => {
  const url = urlOf(origin, path);
  expect(url.origin).toBe(origin);
  expect(url.pathname + url.search).toBe(expected);
});
