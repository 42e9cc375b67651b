import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import path from 'node:path';
import { readImageName } from '@runyard/contract/runs/image-names';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { closeAtEnd, newFolder } from '../../../../../../test/support/close-at-end.ts';
import { openEngine } from '../../engine/engine.ts';
import { type PullProgress, type PullRequest, pullImage } from './pull.ts';

let folder = '';
let server: Server;
let answer: (response: ServerResponse) => void = () => {};
let asked = '';
let askedWith: unknown;
let closed: Promise<unknown> | undefined;

beforeEach(async () => {
  folder = newFolder();
  server = closeAtEnd(
    createServer((request, response) => {
      asked = request.url ?? '';
      askedWith = request.headers['x-registry-auth'];
      closed = once(response, 'close');
      answer(response);
    }),
  );
  server.listen(path.join(folder, 'd.sock'));
  await once(server, 'listening');
});
afterEach(async () => {
  server.closeAllConnections();
});

const progress: PullProgress[] = [];
function pull(maxBytes = 1e9, signal = new AbortController().signal, more: Partial<PullRequest> = {}): Promise<void> {
  const read = readImageName('ghcr.io/team/box:1');
  if (!read.ok) throw new Error(read.problem);
  progress.length = 0;
  return pullImage({
    engine: openEngine({ socketPath: path.join(folder, 'd.sock'), version: '1.41' }),
    name: read.name,
    maxBytes,
    rootFolder: folder,
    onProgress: (step) => progress.push(step),
    signal,
    ...more,
  });
}
const line = (content: object): string => `${JSON.stringify(content)}\r\n`;
const part = (id: string, current: number, total: number): string =>
  line({ id, status: 'Downloading', progressDetail: { current, total } });

test('the reported progress of a pull is the sum over all parts of the image, also if a line of the answer arrives in pieces', async () => {
  answer = (response) => {
    const text = part('a', 10, 100) + part('b', 1, 50) + part('a', 100, 100) + line({ status: 'Status: done' });
    response.write(text.slice(0, 30));
    setImmediate(() => response.end(text.slice(30)));
  };
  await pull();
  expect(progress).toEqual([
    { downloadedBytes: 10, totalBytes: 100 },
    { downloadedBytes: 11, totalBytes: 150 },
    { downloadedBytes: 101, totalBytes: 150 },
  ]);
  expect(asked).toBe('/v1.41/images/create?fromImage=ghcr.io%2Fteam%2Fbox%3A1');
});

test.each([
  ['manifest for ghcr.io/team/box:1 not found: manifest unknown', 'image_not_found'],
  ['pull access denied for team/box, repository does not exist or may require docker login', 'image_no_access'],
  ['Head "https://ghcr.io/v2/": unauthorized', 'image_no_access'],
  ['no matching manifest for linux/amd64 in the manifest list entries', 'image_wrong_architecture'],
  ['write /data: no space left on device', 'image_no_space'],
  ['dial tcp: connection refused', 'image_not_pulled'],
])(
  'pullImage rejects the engine error %j with the reason %s, in the answer and with an error status',
  async (text, reason) => {
    answer = (response) => response.end(line({ errorDetail: { message: text }, error: text }));
    await expect(pull()).rejects.toMatchObject({ phase: 'prepare', reason });
    answer = (response) => response.writeHead(500).end(JSON.stringify({ message: text }));
    await expect(pull()).rejects.toMatchObject({ phase: 'prepare', reason, message: expect.stringContaining(text) });
  },
);

test('pullImage stops the pull if the image is too large or the signal is aborted', async () => {
  answer = (response) => response.write(part('a', 1, 2000));
  await expect(pull(1000)).rejects.toMatchObject({ reason: 'image_too_large' });
  await closed;
  const run = new AbortController();
  answer = (response) => {
    response.write(part('a', 1, 2));
    run.abort(new Error('cancelled'));
  };
  await expect(pull(1000, run.signal)).rejects.toThrow('cancelled');
  await closed;
});

test('pullImage ignores bytes that other programs write during a pull, but stops when the disk is nearly full', async () => {
  const gigabyte = 2 ** 30;
  let free = 90 * gigabyte;
  let looks = 0;
  const looked = async (times: number): Promise<void> => {
    while (looks < times) await new Promise((resolve) => setImmediate(resolve));
  };
  const spaceOf = async () => {
    looks += 1;
    return { free, total: 100 * gigabyte };
  };
  answer = (response) => {
    response.write(part('a', 1, 2));
    free -= gigabyte;
    void looked(3).then(() => response.end(part('a', 2, 2)));
  };
  await pull(1000, undefined, { spaceOf });
  answer = (response) => {
    response.write(part('a', 1, 2));
    free = gigabyte;
  };
  await expect(pull(1000, undefined, { spaceOf })).rejects.toMatchObject({ reason: 'image_no_space' });
  await closed;
});

test('pullImage sends credentials in the header X-Registry-Auth and removes them from error messages of a registry', async () => {
  answer = (response) => response.end(line({ error: 'denied: hunter2 is wrong' }));
  const credentials = { header: 'SEALED', secrets: ['hunter2'] };
  await expect(pull(1000, undefined, { credentials })).rejects.toThrow(/denied: \[removed\] is wrong/);
  expect(askedWith).toBe('SEALED');
});

test('pullImage rejects if the engine breaks off its answer', async () => {
  answer = (response) => {
    response.write(part('a', 1, 2));
    setImmediate(() => response.destroy());
  };
  await expect(pull()).rejects.toMatchObject({ reason: 'image_not_pulled' });
});
