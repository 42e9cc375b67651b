import { spawn } from 'node:child_process';
import type { AnyMessage } from '@agentclientprotocol/sdk';
import { firstPart, shorten } from '@runyard/contract/wire/shorten';
import type { HarnessExit, LinkEvents } from '../acp/agent-link.ts';
import { maxTranscriptLine } from '../acp/limits.ts';
import { asObject } from '../acp/tool-output.ts';
import { type Line, lineSplitter } from '../commands/json-lines.ts';
import { outputWindow, withoutNul } from '../commands/output-window.ts';
import { killMarked, signalGroup } from '../commands/processes.ts';
import { readMessageLine } from './message-line.ts';

/** ACP messages to and from a child process. */
export interface ChildTransport {
  /** The messages of the harness, except session updates. If the reader is slow, the harness has to wait. */
  readable: ReadableStream<AnyMessage>;
  writable: WritableStream<AnyMessage>;
  isAlive(): boolean;
  /** The first lines that were not messages, each cut to 200 characters. */
  strayLines: readonly string[];
  exited: Promise<HarnessExit>;
  kill(): Promise<void>;
}

export interface ChildHarnessOptions {
  command: readonly [string, ...string[]];
  cwd: string;
  env: Readonly<Record<string, string | undefined>>;
  /** `NAME=value` of `env` that marks every process that the harness starts. */
  marker: string;
  events: LinkEvents;
  maxLineBytes?: number;
  graceMs?: number;
}

/** Number of bytes that the transcript keeps of a line that is too long. */
const keptOfCutLine = 4 * 1024;

const maxStrayLines = 3;
const maxStrayChars = 200;

/** Starts an ACP agent as a child process that speaks on stdio. */
export function startChildHarness(options: ChildHarnessOptions): ChildTransport {
  const { events, maxLineBytes = 8 * 1024 * 1024, graceMs = 300 } = options;
  const [program, ...args] = options.command;
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: options.env,
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  const strayLines: string[] = [];
  const stderr = outputWindow(0, 8 * 1024);
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
  // Ignore a broken pipe. It means that the harness has exited, and the message about the exit is more precise.
  child.stdin.on('error', () => {});

  const exited = new Promise<HarnessExit>((resolve) => {
    let description: string | undefined;
    const finish = () => resolve({ description: description ?? 'ended', stderrTail: withoutNul(stderr.tailText()) });
    child.on('error', (error) => {
      description ??= `could not be started: ${error.message}`;
      if (child.pid === undefined) finish();
    });
    child.on('exit', (code, signal) => {
      description ??= signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
      // The last output may still be in the pipe, and a background process of the harness may keep the pipe open.
      setTimeout(finish, 200);
    });
    child.on('close', finish);
  });

  let room = Promise.withResolvers<void>();
  const readable = new ReadableStream<AnyMessage>(
    {
      pull: () => room.resolve(),
      // `read` is not awaited here, because a stream calls `pull` only after `start` has ended.
      start: (controller) => void read(controller),
    },
    { highWaterMark: 64 },
  );

  async function read(controller: ReadableStreamDefaultController<AnyMessage>): Promise<void> {
    const lines = lineSplitter(maxLineBytes, keptOfCutLine);
    try {
      for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
        for (const line of lines.push(chunk)) await handle(line, controller);
      }
      for (const line of lines.end()) await handle(line, controller);
    } catch {
      // `kill` destroyed the output, or the consumer closed the stream.
    }
    await exited;
    try {
      controller.close();
    } catch {
      // The consumer has already cancelled the stream.
    }
  }

  async function handle(line: Line, controller: ReadableStreamDefaultController<AnyMessage>): Promise<void> {
    await events.ready();
    if (line.text.trim() === '') return;
    const read = line.cutFrom === undefined ? readMessageLine(line.text) : undefined;
    if (read === undefined) {
      const text = line.text.endsWith('\r') ? line.text.slice(0, -1) : line.text;
      const bytes = line.cutFrom ?? (text.length > maxTranscriptLine ? Buffer.byteLength(text) : undefined);
      events.line(bytes === undefined ? JSON.stringify({ raw: text }) : cutLine(text, bytes));
      if (strayLines.length < maxStrayLines) strayLines.push(shorten(text, maxStrayChars));
      return;
    }
    const { message, text } = read;
    events.line(text.length <= maxTranscriptLine ? text : cutLine(text, Buffer.byteLength(text)));
    // Handle this notification here and not in the SDK. The SDK handles notifications asynchronously, so the answer to session/prompt could
    // overtake the last text of the turn. The SDK also drops updates that are not in its schemas.
    if ('method' in message && message.method === 'session/update' && !('id' in message)) {
      const params = asObject(message.params);
      events.update(params?.update, params?.sessionId);
      return;
    }
    room = Promise.withResolvers();
    controller.enqueue(message);
    if ((controller.desiredSize ?? 0) <= 0) await Promise.race([room.promise, exited]);
  }

  const writable = new WritableStream<AnyMessage>({
    write(message) {
      const text = JSON.stringify(message);
      events.line(text);
      // Do not wait until the harness reads the message, because the size of the messages, including images, is limited.
      if (child.stdin.writable) child.stdin.write(`${text}\n`);
    },
    close: () => void child.stdin.end(),
  });

  let killing: Promise<void> | undefined;
  return {
    readable,
    writable,
    strayLines,
    isAlive: () => child.pid !== undefined && child.exitCode === null && child.signalCode === null,
    exited,
    kill: () => {
      killing ??= (async () => {
        child.stdin.destroy();
        const { pid } = child;
        if (pid === undefined) return;
        signalGroup(pid, 'SIGTERM');
        const timer = setTimeout(() => signalGroup(pid, 'SIGKILL'), graceMs);
        await exited;
        clearTimeout(timer);
        signalGroup(pid, 'SIGKILL');
        killMarked(options.marker);
        child.stdout.destroy();
        child.stderr.destroy();
      })();
      return killing;
    },
  };
}

/** Returns the shortened transcript line for a line that is too long. */
function cutLine(text: string, bytes: number): string {
  return JSON.stringify({ raw: firstPart(text, keptOfCutLine), cut_from_bytes: bytes });
}
