import { spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Line, lineSplitter } from '../commands/json-lines.ts';
import { repairAnswer } from '../mcp/repair-tools.ts';

const maxLineBytes = 32 * 1024 * 1024;

/** Forwards lines. `change` returns the line to send. Rejects if a line is too long. */
async function forward(from: Readable, to: Writable, change: (line: string) => string): Promise<void> {
  const lines = lineSplitter(maxLineBytes, 0);
  const changed = (line: Line): string => {
    if (line.cutFrom !== undefined) throw new Error(`a message has more than ${maxLineBytes} bytes`);
    return `${change(line.text)}\n`;
  };
  await pipeline(
    from,
    async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) for (const line of lines.push(chunk)) yield changed(line);
      for (const line of lines.end()) yield changed(line);
    },
    to,
  );
}

/** Returns the message in a line; undefined if the line is other output. */
function parse(line: string): { readonly id?: unknown; readonly method?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Runs the command `mcp-server COMMAND ARGUMENT…`: starts an MCP server on stdio for a harness, and repairs the server's list of tools. A
 * harness would otherwise lose all tools of the server, because of one odd tool. Returns the exit code of the server.
 */
export async function mcpServerCommand([command = '', ...args]: readonly string[]): Promise<number> {
  const server = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => server.kill(signal));
  const exited = new Promise<number>((resolve) => {
    server.once('error', (error) => {
      process.stderr.write(`mcp-server: ${error.message}\n`);
      resolve(127);
    });
    server.once('exit', (code) => resolve(code ?? 1));
  });
  const lists = new Set<unknown>();
  const requests = forward(process.stdin, server.stdin, (line) => {
    const message = line.includes('"tools/list"') ? parse(line) : undefined;
    if (message?.method === 'tools/list') lists.add(message.id);
    return line;
  });
  const answers = forward(server.stdout, process.stdout, (line) => {
    const message = lists.size === 0 ? undefined : parse(line);
    if (message === undefined || !lists.delete(message.id)) return line;
    return JSON.stringify(repairAnswer(message));
  });
  // A closed pipe means that one side has ended. The exit of the server ends this program.
  requests.catch(() => server.kill('SIGTERM'));
  await answers.catch((error: Error) => {
    process.stderr.write(`mcp-server: ${error.message}\n`);
    server.kill('SIGTERM');
  });
  return await exited;
}
