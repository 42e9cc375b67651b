import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { newFolder } from '../../../../../../test/support/close-at-end.ts';
import { readCredentials } from './credentials.ts';

let folder = '';
let file = '';
beforeEach(() => {
  folder = newFolder();
  file = path.join(folder, 'config.json');
});

const auth = (text: string) => ({ auth: Buffer.from(text).toString('base64') });
const write = (content: object | string) =>
  writeFile(file, typeof content === 'string' ? content : JSON.stringify(content));
const read = async (registry: string) => {
  const found = await readCredentials(file, registry);
  if (found !== undefined) expect(found.header).toMatch(/^(?:[\w-]{4})*(?:[\w-]{2}==|[\w-]{3}=)?$/);
  return found && JSON.parse(Buffer.from(found.header, 'base64url').toString());
};

test('readCredentials returns only the credentials of the requested registry', async () => {
  await write({
    auths: {
      'ghcr.io': auth('ann:one:with-colon'),
      'https://index.docker.io/v1/': auth('bob:two'),
      '127.0.0.1:5000': { ...auth('eve:three'), identitytoken: 'token' },
    },
  });
  expect(await read('ghcr.io')).toEqual({ username: 'ann', password: 'one:with-colon', serveraddress: 'ghcr.io' });
  expect(await read('docker.io')).toMatchObject({ username: 'bob', password: 'two' });
  expect(await read('127.0.0.1:5000')).toMatchObject({ username: 'eve', identitytoken: 'token' });
  for (const other of ['ghcr.io.evil.test', 'evil.test', '127.0.0.1', 'index.docker.io.evil.test'])
    expect(await read(other)).toBeUndefined();
  expect(await readCredentials(undefined, 'ghcr.io')).toBeUndefined();
});

test.each([
  ['no JSON with hunter2', 'ghcr.io', /not in the format/],
  [{ auths: { 'ghcr.io': 'hunter2' } }, 'ghcr.io', /not in the format/],
  [{ auths: { 'ghcr.io': {} }, credsStore: 'desktop' }, 'ghcr.io', /kept by a program \(desktop\)/],
  [{ credHelpers: { 'gcr.io': 'gcloud' } }, 'gcr.io', /kept by a program \(gcloud\)/],
  [{ auths: { 'ghcr.io': auth('hunter2') } }, 'ghcr.io', /no user and password/],
])(
  'readCredentials refuses the file content %j, and the error does not show the content',
  async (content, registry, message) => {
    await write(content);
    const error = await read(registry).catch((caught: Error) => caught);
    expect(error.message).toMatch(message);
    expect(error.message).not.toContain('hunter2');
  },
);

test('readCredentials rejects with ENOENT if the file is missing', async () => {
  await expect(read('ghcr.io')).rejects.toThrow('cannot be read (ENOENT)');
});
