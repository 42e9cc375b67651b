import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ArtifactRequest, ArtifactResult } from '../artifacts/report.ts';
import { fs } from '../builtin-modules.ts';
import type { AnswerOnGithub } from '../github-answers/answer.ts';
import type { HandoffResult } from '../handoff/handoff-files.ts';
import type { PullRequestAnswer } from '../pull-requests/open.ts';
import type { SubmitAnswer } from '../results/run-result.ts';
import type { TreeAnswer } from '../run-tree/requests.ts';

/**
 * A request of the command `report-artifact`. Requests and answers are one line of JSON each. Before the answer to this request, there may
 * be lines `{"progress": text}`.
 */
export interface ArtifactSocketRequest {
  artifact: ArtifactRequest;
  /** Folder from which the command was called. */
  cwd: string;
}

/** A function for each command, which returns the answer. If the function throws an error, the error is the answer to the command. */
export interface SocketHandlers {
  artifact: (request: ArtifactSocketRequest, onProgress: (line: string) => void) => Promise<ArtifactResult>;
  /** `report-artifact handoff` */
  handoff: (paths: readonly string[], cwd: string) => Promise<HandoffResult>;
  /** `pull-request`; `gone` aborts when the command has exited. */
  pullRequest: (request: Readonly<Record<string, unknown>>, gone: AbortSignal) => Promise<PullRequestAnswer>;
  /** The tool `submit_result` of the MCP server of the run. */
  result: (value: unknown) => Promise<SubmitAnswer>;
  /** A tool that writes on GitHub; `gone` aborts when its caller has exited. */
  github: AnswerOnGithub;
  /** Describes these tools for GitHub, as MCP does. */
  describe: (names: readonly string[]) => Promise<readonly object[]>;
  /** `child-run`; `gone` aborts when the command has exited. */
  tree: (request: Readonly<Record<string, unknown>>, gone: AbortSignal) => Promise<TreeAnswer>;
}

export interface AgentSocket {
  path: string;
  close(): void;
}

/** A run may have only this number of requests in progress; the service refuses further ones. */
const maxConnections = 32;
const maxRequestBytes = 2 * 1024 * 1024;

/**
 * Opens the agent's socket in a folder that only this user can enter. Commands in the sandbox send their requests through this socket, so
 * they need no token for the service.
 */
export function openAgentSocket(handlers: SocketHandlers): AgentSocket {
  const folder = fs.mkdtempSync(join(tmpdir().length < 60 ? tmpdir() : '/tmp', 'runyard-'));
  const path = join(folder, 'agent.sock');
  const connections = new Set<Socket>();
  const server = createServer((socket) => {
    connections.add(socket);
    const disconnect = new AbortController();
    socket.on('close', () => {
      connections.delete(socket);
      disconnect.abort(new Error('the command has ended'));
    });
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
      const onProgress = (progress: string) => void socket.write(`${JSON.stringify({ progress })}\n`);
      void answer(received.slice(0, end), disconnect.signal, onProgress).then((result) =>
        socket.end(`${JSON.stringify(result)}\n`),
      );
    });
  });

  async function answer(line: string, gone: AbortSignal, onProgress: (line: string) => void): Promise<Answer> {
    const request = parseRequest(line);
    if (request === undefined) return { ok: false, message: 'the request was not understood' };
    try {
      if ('pull_request' in request) return await handlers.pullRequest(request.pull_request, gone);
      if ('describe' in request) return await handlers.describe(request.describe);
      if ('github' in request) return await handlers.github(request.github.tool, request.github.input, gone);
      if ('result' in request) return await handlers.result(request.result.value);
      if ('handoff' in request) return await handlers.handoff(request.handoff, request.cwd);
      return 'tree' in request ? await handlers.tree(request.tree, gone) : await handlers.artifact(request, onProgress);
    } catch (error) {
      return { ok: false, message: error instanceof Error ? error.message : String(error) };
    }
  }

  server.maxConnections = maxConnections;
  // The socket exists when `listen` returns, so a later error event would be a bug of the agent.
  server.listen(path);
  server.unref();
  return {
    path,
    close: () => {
      server.close();
      for (const socket of connections) socket.destroy();
      fs.rmSync(folder, { recursive: true, force: true });
    },
  };
}

type Answer = readonly object[] | ArtifactResult | HandoffResult | SubmitAnswer | PullRequestAnswer | TreeAnswer;
type SocketRequest =
  | ArtifactSocketRequest
  | { handoff: string[]; cwd: string }
  | { pull_request: Record<string, unknown> }
  | { github: { tool: string; input?: unknown } }
  | { describe: string[] }
  | { result: { value?: unknown } }
  | { tree: Record<string, unknown> };

function parseRequest(line: string): SocketRequest | undefined {
  try {
    const { artifact, cwd, describe, github, handoff, pull_request, result, tree } = JSON.parse(line) as Record<
      string,
      unknown
    >;
    if (typeof pull_request === 'object' && pull_request !== null) return { pull_request: { ...pull_request } };
    if (Array.isArray(describe)) return { describe: describe.map(String) };
    if (typeof github === 'object' && github !== null)
      return { github: { tool: String(Object(github).tool), input: Object(github).input } };
    if (typeof result === 'object' && result !== null) return { result };
    if (typeof tree === 'object' && tree !== null) return { tree: { ...tree } };
    if (Array.isArray(handoff) && typeof cwd === 'string') return { handoff: handoff.map(String), cwd };
    if (typeof artifact !== 'object' || artifact === null || typeof cwd !== 'string') return undefined;
    const members = Object.entries(artifact).filter(([, value]) => typeof value === 'string');
    const request = Object.fromEntries(members) as unknown as ArtifactRequest;
    return typeof request.type === 'string' ? { artifact: request, cwd } : undefined;
  } catch {
    return undefined;
  }
}
