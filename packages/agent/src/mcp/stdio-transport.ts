import { spawn } from 'node:child_process';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { type Line, lineSplitter } from '../commands/json-lines.ts';
import { outputWindow, withoutNul } from '../commands/output-window.ts';
import { signalGroup } from '../commands/processes.ts';

export interface StdioServerOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /**
   * The variables contain the marker of the run, so that the agent can find the server and its processes and end them with the execution.
   */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly limits?: Partial<StdioLimits>;
}

export interface StdioLimits {
  /** Maximum number of bytes of one message. */
  readonly maxLineBytes: number;
  /** Maximum number of bytes that the server may print between two messages from the agent. */
  readonly maxUnaskedBytes: number;
  /** Time from SIGTERM to SIGKILL. */
  readonly graceMs: number;
}

const defaultLimits: StdioLimits = { maxLineBytes: 8 * 1024 * 1024, maxUnaskedBytes: 32 * 1024 * 1024, graceMs: 300 };

/** Number of bytes that are kept from the end of the output, for a failure message. */
const keptOutput = 4 * 1024;

/** An MCP server in a separate process. */
export interface StdioServer extends Transport {
  /** Returns the end of the server's output, without the protocol messages. */
  lastOutput(): string;
  /** The reason why the server has ended; undefined while the server runs. */
  readonly ended: string | undefined;
}

/**
 * Prepares a connection to an MCP server that exchanges messages over its standard input and output. `start` starts the server. Unlike the
 * SDK's transport, this transport limits messages and output, keeps the last output, and kills the whole process group.
 */
export function stdioServer(options: StdioServerOptions): StdioServer {
  const limits = { ...defaultLimits, ...options.limits };
  const output = outputWindow(0, keptOutput);
  let child: ReturnType<typeof spawn> | undefined;
  let ended: string | undefined;
  let unasked = 0;

  function end(reason: string): void {
    if (ended !== undefined) return;
    ended = reason;
    const pid = child?.pid;
    if (pid !== undefined) {
      signalGroup(pid, 'SIGTERM');
      setTimeout(() => signalGroup(pid, 'SIGKILL'), limits.graceMs);
    }
    child?.stdout?.destroy();
    transport.onclose?.();
  }

  function take(line: Line): void {
    if (line.cutFrom !== undefined) {
      end(`it sent a message of more than ${limits.maxLineBytes} bytes`);
      return;
    }
    const message = parseMessage(line.text);
    if (message === undefined) output.push(Buffer.from(`${line.text}\n`));
    else transport.onmessage?.(message);
  }

  const transport: StdioServer = {
    lastOutput: () => withoutNul(output.tailText()),
    get ended() {
      return ended;
    },
    async start() {
      const lines = lineSplitter(limits.maxLineBytes, keptOutput);
      const started = spawn(options.command, options.args, {
        cwd: options.cwd,
        env: options.env,
        stdio: ['pipe', 'pipe', 'pipe'],
        detached: true,
      });
      child = started;
      started.stdin.on('error', () => {});
      started.stderr.on('data', (chunk: Buffer) => output.push(chunk));
      started.stdout.on('data', (chunk: Buffer) => {
        unasked += chunk.length;
        if (unasked > limits.maxUnaskedBytes)
          return end(`it printed more than ${limits.maxUnaskedBytes} bytes without being asked`);
        for (const line of lines.push(chunk)) if (ended === undefined) take(line);
      });
      await new Promise<void>((resolve, reject) => {
        started.once('spawn', resolve);
        started.once('error', (error) => {
          ended ??= `it could not be started: ${error.message}`;
          reject(new Error(ended));
        });
      });
      // The event `close` comes after the last output. Wait at most 200 ms for this event, because a process that the server started may
      // keep the pipes open.
      started.once('exit', (code, signal) => {
        const reason = signal === null ? `it exited with code ${code}` : `it was ended by ${signal}`;
        const timer = setTimeout(() => end(reason), 200);
        started.once('close', () => {
          clearTimeout(timer);
          end(reason);
        });
      });
    },
    async send(message) {
      if (ended !== undefined || child?.stdin?.writable !== true) throw new Error(ended ?? 'it does not run');
      unasked = 0;
      child.stdin.write(`${JSON.stringify(message)}\n`);
    },
    async close() {
      end('it was stopped');
    },
  };
  return transport;
}

/** Returns the protocol message in a line; undefined if the line is other output. */
function parseMessage(text: string): JSONRPCMessage | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && 'jsonrpc' in value ? (value as JSONRPCMessage) : undefined;
  } catch {
    return undefined;
  }
}
