import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { closeAtEnd, newFolder } from '../../../../../../test/support/close-at-end.ts';
import { openEngine } from '../../engine/engine.ts';
import { type Images, openImages, type PullWatcher } from './images.ts';

const name = 'ghcr.io/team/box:1';
const watcher = (): PullWatcher => ({ started() {}, progress() {}, finished() {} });

let folder = '';
let server: Server;
let pulls: ServerResponse[];
let hasImage = false;
let record: string[];
/** Path that is a link in the fake image. Empty: the image has no links. */
let link = '';

beforeEach(async () => {
  folder = newFolder();
  pulls = [];
  hasImage = false;
  record = [];
  link = '';
  server = closeAtEnd(
    createServer((request, response) => {
      const url = request.url ?? '';
      if (url.includes('/images/create')) return void pulls.push(response.writeHead(200));
      if (url.includes('/archive')) {
        const asked = new URL(url, 'http://engine').searchParams.get('path');
        const stat = Buffer.from(JSON.stringify({ linkTarget: asked === link ? '/workspace' : '' })).toString('base64');
        return void response.writeHead(200, { 'x-docker-container-path-stat': stat }).end();
      }
      if (url.includes('/containers/')) return void response.end('{"Id":"1"}');
      const found = { Id: 'sha256:1', Os: 'linux', Architecture: 'amd64', Size: 1 };
      response.writeHead(hasImage ? 200 : 404).end(JSON.stringify(hasImage ? found : { message: 'none' }));
    }),
  );
  server.listen(path.join(folder, 'd.sock'));
  await once(server, 'listening');
});
afterEach(async () => {
  server.closeAllConnections();
});

function open(): Images {
  return openImages({
    engine: openEngine({ socketPath: path.join(folder, 'd.sock'), version: '1.41' }),
    facts: {
      name: 'engine',
      architecture: 'x86_64',
      securityOptions: [],
      cgroupVersion: '1',
      runtimes: [],
      defaultRuntime: '',
      hasMemoryLimit: true,
      hasProcessLimit: true,
      hasSwapLimit: true,
      hasProcessorLimit: true,
      rootFolder: folder,
    },
    registries: ['ghcr.io'],
    maxBytes: 1000,
    credentialsFor: async () => undefined,
    labels: {},
    newContainerName: () => 'check',
    pulled: {
      begins: async (of) => void record.push(`begins ${of}`),
      failed: async (of) => void record.push(`failed ${of}`),
      has: async (of, { id }) => void record.push(`has ${of} ${id}`),
      async use(of) {
        record.push(`use ${of}`);
        return () => record.push(`release ${of}`);
      },
      tidy: async () => {},
    },
  });
}
const pullsSeen = async (count: number): Promise<void> => {
  while (pulls.length < count) await new Promise((resolve) => setImmediate(resolve));
};

test('an image is pulled once for several runs, and the pull continues while at least one of them waits', async () => {
  const images = open();
  const first = new AbortController();
  const one = images.provide(name, watcher(), first.signal);
  const other = images.provide(name, watcher(), new AbortController().signal);
  await pullsSeen(1);
  first.abort(new Error('cancelled'));
  await expect(one).rejects.toThrow('cancelled');
  hasImage = true;
  pulls[0]?.end();
  expect(await other).toMatchObject({ id: 'sha256:1' });
  expect(pulls).toHaveLength(1);
  expect(record).toEqual([`use ${name}`, `use ${name}`, `begins ${name}`, `release ${name}`, `has ${name} sha256:1`]);
});

test('a failed pull is not recorded as a pulled image, and neither is an image that the engine already had', async () => {
  const images = open();
  const failing = images.provide(name, watcher(), new AbortController().signal);
  await pullsSeen(1);
  pulls[0]?.end('{"error":"manifest unknown"}\r\n');
  await expect(failing).rejects.toThrow('could not be pulled');
  expect(record).toEqual([`use ${name}`, `begins ${name}`, `failed ${name}`, `release ${name}`]);
  record = [];
  hasImage = true;
  const image = await images.provide(name, watcher(), new AbortController().signal);
  image.release();
  expect(record).toEqual([`use ${name}`, `release ${name}`]);
});

test.each(['/workspace', '/opt/runyard', '/run', '/run/runyard', '/etc'])(
  'an image in which %s is a link is refused',
  async (name) => {
    hasImage = true;
    link = name;
    const provided = open().provide('ghcr.io/team/box:1', watcher(), new AbortController().signal);
    await expect(provided).rejects.toMatchObject({ reason: 'image_refused', message: expect.stringContaining(name) });
  },
);
