import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fs } from '../builtin-modules.ts';
import type { ArtifactRequest, ArtifactResult } from './report.ts';

/** What `report-artifact` in the sandbox says to the agent: one line of JSON, answered by one line of JSON. */
export interface SocketRequest {
  artifact: ArtifactRequest;
  /** Folder the command was called in. */
  cwd: string;
}

export interface AgentSocket {
  path: string;
  close(): void;
}

const maxRequestBytes = 2 * 1024 * 1024;

/** Opens the agent's socket in a folder only this user can enter. Commands need no token: they ask the agent. */
export function openAgentSocket(handle: (request: SocketRequest) => Promise<ArtifactResult>): Promise<AgentSocket> {
  const folder = fs.mkdtempSync(join(tmpdir().length < 60 ? tmpdir() : '/tmp', 'runyard-'));
  const path = join(folder, 'agent.sock');
  const connections = new Set<Socket>();
  const server = createServer((socket) => {
    connections.add(socket);
    socket.on('close', () => connections.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.setTimeout(60_000, () => socket.destroy());
    let received = '';
    let answered = false;
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      received += chunk;
      if (received.length > maxRequestBytes) socket.destroy();
      const end = received.indexOf('\n');
      if (end === -1 || answered || socket.destroyed) return;
      answered = true;
      socket.setTimeout(0);
      void answer(received.slice(0, end)).then((result) => socket.end(`${JSON.stringify(result)}\n`));
    });
  });

  async function answer(line: string): Promise<ArtifactResult> {
    const request = parseRequest(line);
    if (request === undefined) return { ok: false, message: 'the request was not understood' };
    try {
      return await handle(request);
    } catch (error) {
      return { ok: false, message: error instanceof Error ? error.message : String(error) };
    }
  }

  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.unref();
      resolve({
        path,
        close: () => {
          server.close();
          for (const socket of connections) socket.destroy();
          fs.rmSync(folder, { recursive: true, force: true });
        },
      });
    });
  });
}

function parseRequest(line: string): SocketRequest | undefined {
  try {
    const { artifact, cwd } = JSON.parse(line) as { artifact?: unknown; cwd?: unknown };
    if (typeof artifact !== 'object' || artifact === null || typeof cwd !== 'string') return undefined;
    const members = Object.entries(artifact).filter(([, value]) => typeof value === 'string');
    const request = Object.fromEntries(members) as unknown as ArtifactRequest;
    return typeof request.type === 'string' ? { artifact: request, cwd } : undefined;
  } catch {
    return undefined;
  }
}
