/**
 * The objects of Git LFS of a fake code host: the batch API (docs/api of git-lfs), and a store at another address that takes only requests
 * with the header that the batch API gave.
 */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface FakeLfsStore {
  /** Adds an object to a repository (`owner/repo`). Returns its pointer, the content of the file in git. */
  add(repository: string, content: Buffer): string;
  /** Returns the content of an object; undefined if there is none. */
  read(repository: string, oid: string): Buffer | undefined;
  /** For `api` of the fake code host. Serves the batch API, and the objects below `/lfs-objects` too. */
  api(request: IncomingMessage, response: ServerResponse): boolean;
  readonly url: string;
  /** Value of the header that the store requires. */
  readonly signature: string;
  /** Address that the batch API names instead of that of the store. */
  misnamed: string | undefined;
  close(): Promise<void>;
}

async function read(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

export async function startFakeLfsStore(): Promise<FakeLfsStore> {
  const objects = new Map<string, Buffer>();
  const signature = `signed-${randomBytes(8).toString('hex')}`;
  const serve = async (request: IncomingMessage, response: ServerResponse, key: string) => {
    if (request.headers['x-signature'] !== signature) return response.writeHead(403).end();
    if (request.method === 'PUT') {
      objects.set(key, await read(request));
      return response.writeHead(200).end();
    }
    const found = objects.get(key);
    if (found === undefined) return response.writeHead(404).end();
    return response.writeHead(200, { 'content-length': found.byteLength }).end(found);
  };
  const server = createServer((request, response) => serve(request, response, (request.url ?? '').slice(1)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  async function batch(repository: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = JSON.parse((await read(request)).toString()) as {
      operation: 'download' | 'upload';
      objects: { oid: string; size: number }[];
    };
    const answered = asked.objects.map((object) => {
      const key = `${repository}/${object.oid}`;
      const isThere = objects.has(key);
      if (asked.operation === 'download' && !isThere)
        return { ...object, error: { code: 404, message: 'Object does not exist' } };
      if (asked.operation === 'upload' && isThere) return object;
      const href = `${store.misnamed ?? url}/${key}`;
      return {
        ...object,
        actions: { [asked.operation]: { href, header: { 'x-signature': signature, host: 'evil' } } },
      };
    });
    response.writeHead(200, { 'content-type': 'application/vnd.git-lfs+json' });
    response.end(JSON.stringify({ transfer: 'basic', objects: answered }));
  }

  const store: FakeLfsStore = {
    url,
    signature,
    misnamed: undefined,
    add: (repository, content) => {
      const oid = createHash('sha256').update(content).digest('hex');
      objects.set(`${repository}/${oid}`, content);
      return `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${content.byteLength}\n`;
    },
    read: (repository, oid) => objects.get(`${repository}/${oid}`),
    api: (request, response) => {
      const [, key] = /^\/lfs-objects\/(.*)$/.exec(request.url ?? '') ?? [];
      if (key !== undefined) void serve(request, response, key);
      if (key !== undefined) return true;
      const [, repository] = /^\/([^/]+\/[^/]+)\.git\/info\/lfs\/objects\/batch$/.exec(request.url ?? '') ?? [];
      if (repository === undefined) return false;
      void batch(repository, request, response);
      return true;
    },
    close: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
  return store;
}
