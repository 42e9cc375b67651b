import readline from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ReadStream, WriteStream } from 'node:tty';
import { ApiError, type Client } from '@runyard/client';
import type { BlockedOn } from '@runyard/contract/runs/approvals';
import type { LiveEvent } from '@runyard/contract/runs/live-events';
import { isTerminal } from '@runyard/contract/runs/run-states';
import type { Context } from '../../context/context.ts';
import { harmlessLine } from '../../terminal/harmless.ts';
import { answerOf, promptOf } from './view/question.ts';

/** Shows the requests of a run to the person at this terminal, and sends the answers. */
export interface Asker {
  /** If the event may have changed the open question of the run, reads the question again. Then opens, keeps or removes the prompt. */
  update(event: LiveEvent): Promise<void>;
  isAsking(): boolean;
  /**
   * Calls `show`, which prints something. An open prompt is removed before the call and shown again after the call, with the text that the
   * person has typed.
   */
  around(show: () => void): void;
  /** This signal is aborted when the person ends the input with Ctrl-D. */
  readonly left: AbortSignal;
  /** Removes an open prompt. */
  close(): void;
}

/** The input and output that an asker uses for its prompt. */
interface Terminal {
  readonly input: ReadStream;
  readonly output: WriteStream;
}

interface Prompt {
  readonly requestId: string;
  readonly lines: readline.Interface;
}

/** If no input arrives for this time, all text that was typed before the prompt has been read. */
const quietMs = 50;

/** Returns the terminal of this process. Returns undefined if standard input or standard output is not a terminal. */
export function ownTerminal(): Terminal | undefined {
  const { stdin, stdout } = process;
  return stdin.isTTY && stdout.isTTY ? { input: stdin, output: stdout } : undefined;
}

/** Creates an asker for a run. When `interrupted` is aborted, removes the prompt, because the command is about to end. */
export function createAsker(
  context: Context,
  client: Client,
  runId: string,
  terminal: Terminal,
  interrupted: AbortSignal,
): Asker {
  const left = new AbortController();
  /** Ids of the requests that this asker has answered or is answering. */
  const answered = new Set<string>();
  /**
   * Ids of the requests that the screen already shows. The ids are needed, because the state BLOCKED can arrive before the event with the
   * request.
   */
  const printedIds = new Set<string>();
  let prompt: Prompt | undefined;

  function close(): void {
    if (!prompt) return;
    const { lines } = prompt;
    erase(terminal, prompt);
    prompt = undefined;
    lines.close();
  }

  async function send(request: BlockedOn, text: string): Promise<void> {
    answered.add(request.request_id);
    try {
      await client.sendFollowup({ params: { runId }, body: answerOf(request, text) });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      context.report(`the answer was not taken: ${harmlessLine(error.problem.detail ?? error.problem.title, 300)}`);
      answered.delete(request.request_id);
      await refresh();
    }
  }

  async function ask(request: BlockedOn): Promise<void> {
    await dropTypedAhead(terminal.input);
    if (interrupted.aborted || left.signal.aborted) return;
    const lines = readLines(terminal, context.colours.yellow(promptOf(request)));
    prompt = { requestId: request.request_id, lines };
    lines.on('line', (text) => {
      if (prompt?.lines !== lines) return;
      if (text.trim() === '') {
        lines.prompt();
        return;
      }
      prompt = undefined;
      lines.close();
      send(request, text.trim()).catch((error: unknown) => {
        context.report(
          `the answer was not sent: ${harmlessLine(error instanceof Error ? error.message : String(error))}`,
        );
        left.abort();
      });
    });
    lines.on('close', () => {
      if (prompt?.lines !== lines) return;
      prompt = undefined;
      context.out('\n');
      left.abort();
    });
    lines.prompt();
  }

  async function refresh(): Promise<void> {
    const { state, blocked_on } = await client.getRun({ params: { runId } });
    const question = state === 'BLOCKED' ? blocked_on : undefined;
    if (prompt && prompt.requestId !== question?.request_id) {
      close();
      if (!isTerminal(state)) context.out(`  ${context.colours.dim('answered elsewhere: the prompt is withdrawn')}\n`);
    }
    if (question && !prompt && printedIds.has(question.request_id) && !answered.has(question.request_id))
      await ask(question);
  }

  interrupted.addEventListener('abort', close, { once: true });
  return {
    async update(event) {
      if (event.type === 'conversation' && event.event.type === 'blocked')
        printedIds.add(event.event.request.request_id);
      const type = event.type === 'conversation' ? event.event.type : event.type;
      if (type === 'state' || type === 'blocked' || type === 'decided') await refresh();
    },
    isAsking: () => prompt !== undefined,
    around(show) {
      if (!prompt) return show();
      erase(terminal, prompt);
      show();
      prompt.lines.prompt(true);
    },
    left: left.signal,
    close,
  };
}

/** Begins to read lines with this prompt. Ctrl-C interrupts the command, as it does without a prompt. */
function readLines({ input, output }: Terminal, prompt: string): readline.Interface {
  const lines = readline.createInterface({ input, output, terminal: true, historySize: 0, prompt });
  return lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
}

/** Removes the prompt from the screen. */
function erase({ output }: Terminal, { lines }: Prompt): void {
  readline.moveCursor(output, 0, -lines.getCursorPos().rows);
  readline.cursorTo(output, 0);
  readline.clearScreenDown(output);
}

/**
 * Drops text that was typed before the question was shown, because this text cannot be the answer. A Ctrl-C in the text still interrupts
 * the command.
 */
async function dropTypedAhead(input: ReadStream): Promise<void> {
  let lastAt = performance.now();
  const drop = (data: Buffer) => {
    lastAt = performance.now();
    if (data.includes(0x03)) process.kill(process.pid, 'SIGINT');
  };
  input.setRawMode(true);
  input.on('data', drop).resume();
  while (performance.now() - lastAt < quietMs) await sleep(quietMs / 5);
  input.off('data', drop).pause();
}
