import { expect, test } from 'vitest';
import { methodOf, setHeader, urlOf } from './api.ts';

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
])('urlOf makes a URL of the service from the path %j', (path, expected) => {
  const url = urlOf(origin, path);
  expect(url.origin).toBe(origin);
  expect(url.pathname + url.search).toBe(expected);
});

test.each(['get', 'Post', 'DELETE'])('methodOf returns the method %s in capital letters', (word) => {
  expect(methodOf(word)).toBe(word.toUpperCase());
});

test.each(['FOO', '/agent/runs', 'GET /agent/runs', ''])(
  'methodOf refuses the method %j, and the error lists the methods',
  (word) => {
    expect(() => methodOf(word)).toThrow(/ is not a method; give one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS/);
  },
);

test.each(['foo', ': a', 'a b: c', ''])('setHeader refuses the header %j', (pair) => {
  expect(() => setHeader(new Headers(), pair)).toThrow("--header takes 'Name: value'");
});
