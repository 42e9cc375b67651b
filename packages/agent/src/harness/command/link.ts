import { type ChildProcess, spawn } from 'node:child_process';
import type { PromptRequest, PromptResponse } from '@agentclientprotocol/sdk';
import { lastPart } from '@runyard/contract/wire/shorten';
import { type AgentLink, type LinkEvents, protocolVersion } from '../../acp/agent-link.ts';
import { maxTranscriptLine } from '../../acp/limits.ts';
import type { BuiltinVerdict } from '../../acp/outcome.ts';
import { blockText } from '../../acp/tool-output.ts';
import { lineSplitter } from '../../commands/json-lines.ts';
import { outputWindow, withoutNul } from '../../commands/output-window.ts';
import { killMarked, signalGroup } from '../../commands/processes.ts';
import { newId } from '../../new-id.ts';

export interface CommandLinkOptions {
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `NAME=value` of `env` that marks every process of the run. */
  readonly marker: string;
  readonly events: LinkEvents;
  /** Time between SIGTERM and SIGKILL after a cancel. */
  readonly graceMs?: number;
}

const maxSummaryLength = 4_000;

/**
 * Runs a program once for each turn. The program reads the prompt from standard input. Each line of the standard output is a line of
 * the transcript, and the exit code is the result.
 */
export function connectCommand(options: CommandLinkOptions): AgentLink {
  const { events, marker, graceMs = 1_000 } = options;
  const closed = new AbortController();
  let running: ChildProcess | undefined;

  function stop(): void {
    const pid = running?.pid;
    if (pid === undefined) return;
    signalGroup(pid, 'SIGTERM');
    setTimeout(() => {
      signalGroup(pid, 'SIGKILL');
      killMarked(marker);
    }, graceMs).unref();
  }

  async function runOnce(input: string): Promise<{ readonly verdict: BuiltinVerdict; readonly summary: string }> {
    const [program, ...args] = options.command;
    const child = spawn(program, args, { cwd: options.cwd, env: options.env, stdio: 'pipe', detached: true });
    running = child;
    const ended = new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(`could not be started: ${error.message}`));
      child.once('close', (code, signal) =>
        resolve(code === 0 ? '' : signal === null ? `exited with code ${code}` : `was ended by ${signal}`),
      );
    });
    const stderr = outputWindow(0, 8 * 1024);
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    // Ignore a broken pipe, because the program may exit without reading its prompt.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    const lines = lineSplitter(maxTranscriptLine, 4 * 1024);
    let summary = '';
    const take = async (text: string, cutFrom: number | undefined): Promise<void> => {
      await events.ready();
      events.line(cutFrom === undefined ? withoutNul(text) : JSON.stringify({ raw: text, cut_from_bytes: cutFrom }));
      summary = lastPart(`${summary}${text}\n`, maxSummaryLength);
    };
    for await (const chunk of child.stdout as AsyncIterable<Buffer>)
      for (const line of lines.push(chunk)) await take(line.text, line.cutFrom);
    for (const line of lines.end()) await take(line.text, line.cutFrom);
    const failure = await ended;
    running = undefined;
    const tail = withoutNul(stderr.tailText()).trimEnd();
    const errorEnd = tail === '' ? '' : ` Its last output on standard error:\n${tail}`;
    return {
      verdict: {
        success: failure === '',
        message: failure === '' ? '' : `The program ${program} ${failure}.${errorEnd}`,
      },
      summary: summary.trim(),
    };
  }

  async function prompt({ sessionId, prompt: blocks }: PromptRequest): Promise<PromptResponse> {
    const { verdict, summary } = await runOnce(`${blocks.map((block) => blockText(block) ?? '').join('\n\n')}\n`);
    if (summary !== '')
      events.update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: summary } }, sessionId);
    return { stopReason: 'end_turn', _meta: { runyard: verdict } };
  }

  return {
    initialize: async () => ({ protocolVersion }),
    newSession: async () => ({ sessionId: newId() }),
    // Never called, because `initialize` does not announce that the harness loads sessions.
    loadSession: () => Promise.reject(new Error('a command has no sessions')),
    prompt,
    cancel: stop,
    closed: closed.signal,
    isAlive: () => true,
    exited: new Promise(() => {}),
    kill: async () => {
      const pid = running?.pid;
      if (pid !== undefined) signalGroup(pid, 'SIGKILL');
      killMarked(marker);
      closed.abort();
    },
  };
}
