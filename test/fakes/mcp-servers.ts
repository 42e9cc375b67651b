/**
 * Real MCP servers for tests. A server is either one file that runs in a sandbox, or an HTTP server on loopback behind a proxy that
 * requires a header.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import http, { type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { withEsbuild } from '../../packages/worker/src/runtime/with-esbuild.ts';
import { freePort } from '../support/free-port.ts';

const packages = fileURLToPath(new URL('../../node_modules/@modelcontextprotocol/', import.meta.url));
const programOf = (name: string): string => path.join(packages, `server-${name}/dist/index.js`);

/** Names of the bundled servers. */
type BundledName = 'everything' | 'filesystem';

/** Bundles servers of the npm registry into one file each, so that a sandbox needs only Node and no packages. */
export async function bundleMcpServers(): Promise<Readonly<Record<BundledName, Buffer>>> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-mcp-'));
  const banner = { js: "import { createRequire as r } from 'node:module';const require = r(import.meta.url);" };
  const entryPoints = { everything: programOf('everything'), filesystem: programOf('filesystem') };
  const read = (name: BundledName) => readFile(path.join(folder, `${name}.js`));
  try {
    await withEsbuild(({ build }) =>
      build({
        entryPoints,
        outdir: folder,
        banner,
        bundle: true,
        minifyWhitespace: true,
        platform: 'node',
        format: 'esm',
      }),
    );
    return { everything: await read('everything'), filesystem: await read('filesystem') };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export interface HttpMcpServer {
  readonly url: string;
  /** The headers of each request that had the right credential. */
  readonly admitted: readonly IncomingHttpHeaders[];
  close(): Promise<void>;
}

/** Starts the server `everything` with Streamable HTTP. Requests without this authorization get 401. */
export async function startHttpMcpServer(authorization: string): Promise<HttpMcpServer> {
  const port = await freePort();
  const child = spawn(process.execPath, [programOf('everything'), 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  let said = '';
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes('listening on port')) resolve();
    });
    child.once('exit', () => reject(new Error(`the MCP server ended: ${said}`)));
  });
  const admitted: IncomingHttpHeaders[] = [];
  const door = http.createServer((request, response) => {
    if (request.headers.authorization !== authorization) return response.writeHead(401).end();
    admitted.push(request.headers);
    const { method, url } = request;
    const { connection: _, ...headers } = request.headers;
    const to = { host: '127.0.0.1', port, method, path: url, headers, agent: false };
    const inner = http.request(to, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    inner.on('error', () => response.destroy());
    response.on('close', () => inner.destroy());
    return request.pipe(inner);
  });
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(door.address() as AddressInfo).port}/mcp`,
    admitted,
    close: async () => {
      door.close();
      door.closeAllConnections();
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** Starts an MCP server over HTTP. Its description, its tool and its answers contain the given text. */
export async function startSayingMcpServer(text: string): Promise<{ readonly url: string; close(): void }> {
  const results: Record<string, object> = {
    initialize: {
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: text, version: '1' },
    },
    'tools/list': { tools: [{ name: 'say', description: text, inputSchema: { type: 'object', description: text } }] },
    'tools/call': { content: [{ type: 'text', text: `It says: ${text}` }] },
  };
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const { id, method = '' } = JSON.parse(body || '{}') as { id?: number; method?: string };
    if (id === undefined) return response.writeHead(202).end();
    const answer = results[method] ? { result: results[method] } : { error: { code: -32_601, message: text } };
    return response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
