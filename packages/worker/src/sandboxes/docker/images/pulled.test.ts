import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { closeAtEnd, newFolder } from '../../../../../../test/support/close-at-end.ts';
import { openEngine } from '../../engine/engine.ts';
import { openPulledImages, type PulledImages } from './pulled.ts';

let folder = '';
let server: Server;
let now = 0;
/** The images in the fake engine by name, and the ids of images that have a container. */
let images: Map<string, { Id: string; Size: number }>;
let withContainer: Set<string>;

beforeEach(async () => {
  folder = newFolder();
  images = new Map();
  withContainer = new Set();
  server = closeAtEnd(
    createServer((request, response) => {
      const name = decodeURI(request.url ?? '').replace(/^\/v1.41\/images\/|\/json$/g, '');
      const image = images.get(name);
      if (image === undefined) return void response.writeHead(404).end('{"message":"none"}');
      if (request.method === 'GET') return void response.end(JSON.stringify(image));
      if (withContainer.has(name)) return void response.writeHead(409).end('{"message":"in use"}');
      images.delete(name);
      response.end('[]');
    }),
  );
  server.listen(path.join(folder, 'd.sock'));
  await once(server, 'listening');
});
afterEach(async () => {
  server.closeAllConnections();
});

const open = (
  maxBytes = 100,
  warn = (fields: object): void => expect.unreachable(JSON.stringify(fields)),
): PulledImages =>
  openPulledImages({
    engine: openEngine({ socketPath: path.join(folder, 'd.sock'), version: '1.41' }),
    stateRoot: folder,
    maxBytes,
    log: { info: () => {}, warn },
    now: () => (now += 1),
  });

/** Does the same as a pull: adds the image to the fake engine and to the record. */
async function pull(pulled: PulledImages, name: string, bytes: number): Promise<void> {
  await pulled.begins(name);
  images.set(name, { Id: `id of ${name}`, Size: bytes });
  await pulled.has(name, { id: `id of ${name}`, bytes });
}
const left = () => [...images.keys()].sort();

test('tidy removes the least recently used images, and keeps images that the worker has not pulled', async () => {
  images.set('operator/box:1', { Id: 'its own', Size: 1000 });
  const pulled = open();
  for (const name of ['ghcr.io/a:1', 'ghcr.io/b:1', 'ghcr.io/c:1']) await pull(pulled, name, 40);
  const release = await pulled.use('ghcr.io/a:1');
  release();
  await pulled.tidy();
  expect(left()).toEqual(['ghcr.io/a:1', 'ghcr.io/c:1', 'operator/box:1']);
});

test('tidy keeps an image while a run is about to use it or a container uses it, and removes it later', async () => {
  const pulled = open(50);
  for (const name of ['a', 'b', 'c']) await pull(pulled, name, 40);
  const releaseA = await pulled.use('a');
  const releaseA2 = await pulled.use('a');
  withContainer.add('b');
  await pulled.tidy();
  expect(left()).toEqual(['a', 'b']);
  releaseA();
  releaseA();
  await pulled.tidy();
  expect(left()).toEqual(['a', 'b']);
  releaseA2();
  await pulled.tidy();
  expect(left()).toEqual(['b']);
});

test('the next worker reads the record, and also finds images of pulls that an earlier worker did not finish', async () => {
  const first = open(0);
  await pull(first, 'a', 80);
  await first.begins('killed');
  images.set('killed', { Id: 'new', Size: 90 });
  await first.begins('failed');
  await first.failed('failed');
  images.set('failed', { Id: 'pulled by the operator', Size: 500 });
  await first.tidy();
  expect(left(), 'nothing is removed where the setting is 0').toEqual(['a', 'failed', 'killed']);
  await open().tidy();
  expect(left()).toEqual(['failed', 'killed']);
});

test('tidy does not remove an image that the operator has pulled or tagged under the same name', async () => {
  const pulled = open(50);
  await pull(pulled, 'a', 80);
  images.set('a', { Id: 'pulled by the operator', Size: 80 });
  await pulled.tidy();
  expect(left()).toEqual(['a']);
});

test('a record that cannot be read is reported, and no image of this record is removed', async () => {
  const warnings: object[] = [];
  images.set('ghcr.io/a:1', { Id: 'a', Size: 1000 });
  await writeFile(path.join(folder, 'pulled-images.json'), '[{');
  await open(100, (fields) => void warnings.push(fields)).tidy();
  expect(warnings).toHaveLength(1);
  expect(left()).toEqual(['ghcr.io/a:1']);
});
