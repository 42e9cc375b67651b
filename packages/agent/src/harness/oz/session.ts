import type { SessionUpdate, StopReason } from '@agentclientprotocol/sdk';
import type { BuiltinVerdict } from '../../acp/outcome.ts';
import type { CommandResult } from '../../commands/run-command.ts';
import type { TurnImage } from './conversation-images.ts';

/** Reports the output of an engine during a turn. Each call resolves when the engine may send the next output. */
export interface TurnVoice {
  say(text: string, messageId?: string): Promise<void>;
  think(text: string): Promise<void>;
  update(update: SessionUpdate): Promise<void>;
}

export interface TurnEnd {
  stopReason: StopReason;
  verdict: BuiltinVerdict;
}

/** Runs one turn of an engine, until the end of the prompt or until `signal` aborts. */
export type Engine = (turn: {
  /** The prompt, without a decision about a request of an earlier sandbox. */
  prompt: string;
  /**
   * The prompt that begins with such a decision as text. An engine uses this prompt if it cannot continue the action that the decision is
   * about.
   */
  promptWithAnswer: string;
  /** True: the turn has the mode `plan`. */
  isPlan: boolean;
  /** One line for each file of the prompt: path, type, size. */
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

/** Returns the update for a piece of output of a running command, in the same form as other harnesses send it. */
export function commandOutput(toolCallId: string, data: string): SessionUpdate {
  return {
    sessionUpdate: 'tool_call_update',
    toolCallId,
    _meta: { terminal_output: { terminal_id: toolCallId, data } },
  };
}

/**
 * Returns the update for the end of a command. The client already has the output, because it was sent while the command ran. If the
 * output is long, this update repeats its head and its tail.
 */
export function commandEnd(toolCallId: string, result: CommandResult): SessionUpdate {
  return {
    sessionUpdate: 'tool_call_update',
    toolCallId,
    status: result.exitCode === 0 && result.outcome === 'exited' ? 'completed' : 'failed',
    rawOutput: {
      exit_code: result.exitCode,
      output_bytes: result.outputBytes,
      ...(result.outputArtifact === undefined ? {} : { output_artifact_uid: result.outputArtifact }),
      duration_ms: Math.round(result.durationMs),
      ...(result.truncated || result.outcome === 'not_started'
        ? { output: result.output, output_truncated: true }
        : {}),
    },
    _meta: { terminal_exit: { terminal_id: toolCallId, exit_code: result.exitCode, signal: result.signal ?? null } },
  };
}
