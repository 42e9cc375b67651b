import { expect, test } from 'vitest';
import { passkeyPlaceOf } from './place.ts';

test.each([
  ['https://runyard.example.com', 'runyard.example.com', 'https://runyard.example.com'],
  ['https://runyard.example.com:8443', 'runyard.example.com', 'https://runyard.example.com:8443'],
  ['http://localhost:4180', 'localhost', 'http://localhost:4180'],
  ['http://runyard.localhost:4180', 'runyard.localhost', 'http://runyard.localhost:4180'],
  ['http://127.0.0.1:4180', 'localhost', 'http://localhost:4180'],
  ['http://[::1]:4180', 'localhost', 'http://localhost:4180'],
])('passkeys of a service at %s belong to the host %s and the origin %s', (baseUrl, rpId, origin) => {
  expect(passkeyPlaceOf(baseUrl)).toEqual({ rpId, origin });
});

test.each([
  ['https://10.0.0.5', /IP address.*RUNYARD_BASE_URL/],
  ['https://[2001:db8::5]:4180', /IP address.*RUNYARD_BASE_URL/],
  ['http://runyard.example.com', /TLS.*RUNYARD_BASE_URL/],
])('passkeys do not work at %s, and the reason says what to do', (baseUrl, reason) => {
  expect(passkeyPlaceOf(baseUrl)).toMatch(reason);
});
