import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import { readAliases } from './aliases.ts';
import { writePktLines } from './pkt-line.ts';

let answer: (request: IncomingMessage, response: ServerResponse) => void;
const host = createServer((request, response) => answer(request, response)).listen(0, '127.0.0.1');
await once(host, 'listening');
afterAll(() => void host.close());
const clone = new URL(`http://127.0.0.1:${(host.address() as AddressInfo).port}/acme/site.git`);

const id = 'a'.repeat(40);
const version2 = writePktLines(['# service=git-upload-pack', 'flush', 'version 2', 'ls-refs=unborn', 'flush']);
const version1 = writePktLines([
  '# service=git-upload-pack',
  'flush',
  `${id} HEAD\0symref=HEAD:refs/heads/main`,
  'flush',
]);

const read = () =>
  readAliases(
    {
      repository: { owner: 'acme', repo: 'site' },
      clone,
      chosen: { kind: 'none' },
      signal: AbortSignal.timeout(60_000),
    },
    ['a', 'b'],
  );
const list = (bytes: Buffer | string, status = 200) => {
  answer = ({ method }, response) =>
    void (method === 'GET' ? response.end(version2) : response.writeHead(status).end(bytes));
};

describe('the aliases of branches (symbolic refs)', () => {
  it('are read from the list of refs that the host sends', async () => {
    const lines = [
      `${id} refs/heads/a symref-target:refs/heads/main`,
      `${id} refs/heads/b`,
      `${id} refs/heads/c peeled:${id} symref-target:refs/heads/b`,
      `${id} refs/tags/d symref-target:refs/heads/main`,
    ];
    list(writePktLines([...lines, 'flush']));
    const aliases = new Map([
      ['a', 'main'],
      ['c', 'b'],
    ]);
    expect(await read()).toEqual({ kind: 'aliases', aliases });
  });

  it.each([
    ['speaks version 1 only', version1],
    ['sends no list of git', Buffer.from('<html>')],
  ])('are unknown if the host %s', async (_name, bytes) => {
    answer = (_request, response) => void response.end(bytes);
    expect(await read()).toEqual({ kind: 'aliases', aliases: new Map() });
  });

  it.each([
    ['fails', 'no', 500, 'answered 500'],
    ['sends something else', 'no list', 200, 'not of git'],
    ['sends a longer list than is read', 'x'.repeat(1024 * 1024 + 1), 200, 'too many branches'],
  ])('are not assumed to be absent if the host %s', async (_name, text, status, reason) => {
    list(text, status);
    expect(await read()).toMatchObject({ kind: 'unavailable', message: expect.stringContaining(reason) });
  });
});
