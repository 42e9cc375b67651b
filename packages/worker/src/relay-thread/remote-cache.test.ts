import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { openCache } from '../cache/cache.ts';
import { serveCache } from '../cache/serve.ts';
import { remoteCache } from './remote-cache.ts';

test('remoteCache returns undefined for a missing object, but rejects if no worker runs', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-remote-cache-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const socket = path.join(folder, 'c');
  const served = await serveCache(await openCache({ folder: path.join(folder, 'cache'), maxBytes: 1_000 }), socket);
  const remote = remoteCache(socket);
  expect(await remote.read('a')).toBeUndefined();
  expect(await remote.write('a', Readable.from([Buffer.from('object')]))).toBe('kept');
  const found = await remote.read('a');
  expect(found && (await text(found.content()))).toBe('object');
  served.close();
  await expect(remote.read('a')).rejects.toThrow();
});
