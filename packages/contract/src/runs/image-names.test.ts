import { expect, test } from 'vitest';
import { readImageName } from './image-names.ts';

test.each([
  ['node', 'docker.io', 'docker.io/library/node:latest'],
  ['node:24', 'docker.io', 'docker.io/library/node:24'],
  ['team/image', 'docker.io', 'docker.io/team/image:latest'],
  ['ghcr.io/team/image:v1.2', 'ghcr.io', 'ghcr.io/team/image:v1.2'],
  ['GHCR.io/a', 'ghcr.io', 'GHCR.io/a:latest'],
  ['localhost:5000/a/b', 'localhost:5000', 'localhost:5000/a/b:latest'],
  ['127.0.0.1:5000/a:b', '127.0.0.1:5000', '127.0.0.1:5000/a:b'],
  [`a@sha256:${'0'.repeat(64)}`, 'docker.io', `docker.io/library/a@sha256:${'0'.repeat(64)}`],
  [`a:tag@sha256:${'0'.repeat(64)}`, 'docker.io', `docker.io/library/a@sha256:${'0'.repeat(64)}`],
])('reads %s', (given, registry, full) => {
  expect(readImageName(given)).toEqual({ ok: true, name: { registry, full } });
});

test.each([
  '',
  ' node',
  'node:24 --privileged',
  'node:24\n',
  '../../containers/json',
  'a/../b',
  'a//b',
  'Node',
  '-v',
  'a?tag=b',
  'a#b',
  'a%2fb',
  'a:b:c',
  'http://ghcr.io/a',
  'user:password@ghcr.io/a',
  'ghcr.io:99999999/a',
  'a@sha256:12',
  `a@sha256:${'0'.repeat(64)}@b`,
  'f'.repeat(64),
  'a'.repeat(600),
])('refuses %j', (given) => {
  expect(readImageName(given)).toMatchObject({
    ok: false,
    problem: expect.stringContaining('not the name of a container image'),
  });
});
