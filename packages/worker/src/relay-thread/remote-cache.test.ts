import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { openBudget } from '../cache/budget.ts';
import { openCache } from '../cache/cache.ts';
import { openKeptWorkspaces } from '../cache/kept-workspaces.ts';
import { serveCache } from '../cache/serve.ts';
import { folderCopies } from '../sandboxes/bubblewrap/copy-folders.ts';
import { remoteCache } from './remote-cache.ts';

test('remoteCache returns undefined for a missing object, but rejects if no worker runs', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-remote-cache-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const socket = path.join(folder, 'c');
  const budget = openBudget(1_000);
  const cache = await openCache({ folder: path.join(folder, 'cache'), budget });
  const workspaces = await openKeptWorkspaces({ stateRoot: folder, budget, folders: folderCopies });
  const served = await serveCache({ cache, workspaces }, socket, { warn: () => {} });
  const remote = remoteCache(socket);
  expect(await remote.read('a')).toBeUndefined();
  expect(await remote.write('a', Readable.from([Buffer.from('object')]))).toBe('kept');
  const found = await remote.read('a');
  expect(found && (await text(found.content()))).toBe('object');
  served.close();
  await expect(remote.read('a')).rejects.toThrow();
});
