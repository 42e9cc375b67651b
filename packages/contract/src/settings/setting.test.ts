import { expect, test } from 'vitest';
import { postgresUrl } from './setting.ts';

test.each([
  'postgres://runyard@localhost/runyard',
  'postgresql://runyard:a%23b%40c@db.example.com:5432/runyard?sslmode=require',
  'postgres:///runyard?host=/var/run/postgresql',
])('%s is the URL of a PostgreSQL server', (url) => {
  expect(postgresUrl(url)).toEqual({ value: url });
});

test.each([
  ['https://localhost/runyard', 'must be a postgres:// URL'],
  ['postgres://runyard:12#3@localhost/runyard', '%23 for #'],
  ['postgres://runyard:a/b@localhost/runyard', '%2F for /'],
  ['postgres://runyard:50%@localhost/runyard', '%25 for %'],
])('%s is refused with the way to write it', (url, problem) => {
  expect(postgresUrl(url)).toEqual({ problem: expect.stringContaining(problem) });
});
