import type { SessionUpdate, StopReason } from '@agentclientprotocol/sdk';
import type { BuiltinVerdict } from '../../acp/outcome.ts';
import type { CommandResult } from '../../commands/run-command.ts';
import type { TurnImage } from './conversation-images.ts';

/** What an engine of the built-in harness says during a turn. Each call resolves when there is room for more. */
export interface TurnVoice {
  say(text: string, messageId?: string): Promise<void>;
  think(text: string): Promise<void>;
  update(update: SessionUpdate): Promise<void>;
}

export interface TurnEnd {
  stopReason: StopReason;
  verdict: BuiltinVerdict;
}

/** One turn of an engine: plays the prompt until its end, or until `signal` aborts. */
export type Engine = (turn: {
  /** What is said, but for what was decided about a request of an earlier sandbox. */
  prompt: string;
  /** With that, in words: for an engine that does not take up by itself what it had asked. */
  promptWithAnswer: string;
  /** One line for each file that came with the prompt: path, type, size. */
  files: readonly string[];
  images: readonly TurnImage[];
  voice: TurnVoice;
  signal: AbortSignal;
}) => Promise<TurnEnd>;

export function turnVoice(update: TurnVoice['update']): TurnVoice {
  return {
    update,
    say: (text, messageId) =>
      update({
        sessionUpdate: 'agent_message_chunk',
        content: { type: 'text', text },
        ...(messageId === undefined ? {} : { messageId }),
      }),
    think: (text) => update({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text } }),
  };
}

/** A piece of a running command's output, as other harnesses send it too. */
export function commandOutput(toolCallId: string, data: string): SessionUpdate {
  return {
    sessionUpdate: 'tool_call_update',
    toolCallId,
    _meta: { terminal_output: { terminal_id: toolCallId, data } },
  };
}

/** The end of a command. Its output went out while it ran; only head and tail of a long one are sent again. */
export function commandEnd(toolCallId: string, result: CommandResult): SessionUpdate {
  return {
    sessionUpdate: 'tool_call_update',
    toolCallId,
    status: result.exitCode === 0 && result.outcome === 'exited' ? 'completed' : 'failed',
    rawOutput: {
      exit_code: result.exitCode,
      output_bytes: result.outputBytes,
      ...(result.truncated || result.outcome === 'not_started'
        ? { output: result.output, output_truncated: true }
        : {}),
    },
    _meta: { terminal_exit: { terminal_id: toolCallId, exit_code: result.exitCode, signal: result.signal ?? null } },
  };
}
