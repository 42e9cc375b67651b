import type { ContentBlock } from '@agentclientprotocol/sdk';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { RunMode } from '@runyard/contract/runs/message-origin';
import type { HarnessOutcome } from '../acp/outcome.ts';
import { attachedFiles, promptAfterRestart, promptText } from '../harness/prompt.ts';
import type { WrittenAttachment } from '../workspace/attachments.ts';
import type { TurnRunner } from './turn-runner.ts';
import type { TurnsOptions } from './turns-options.ts';

export interface MessageTurn {
  /** The message as the conversation shows it. */
  readonly message: string;
  /** The message as the harness gets it; default: `message`. */
  readonly request?: string;
  readonly mode: RunMode | undefined;
  readonly attachments?: readonly WrittenAttachment[];
}

/** Gives the harness a message after its first turn. Starts the harness again if it has exited. */
export async function runMessageTurn(
  task: AgentTask,
  { message, request = message, mode, attachments = [] }: MessageTurn,
  { turns, runner }: { readonly turns: Pick<TurnsOptions, 'harness' | 'record'>; readonly runner: TurnRunner },
): Promise<HarnessOutcome> {
  const text = promptText(task, request, mode);
  const { driver, restarted } = await turns.harness.start(task);
  if (restarted !== undefined) runner.addOpeningNotice('harness_restarted', { reason: restarted.reason });
  const before = restarted === undefined ? '' : turns.record.text();
  const prompt = (loaded: boolean): ContentBlock[] => {
    const whole = restarted === undefined || loaded ? text : promptAfterRestart(task, before, text);
    return [{ type: 'text', text: whole }, ...attachedFiles(task, attachments)];
  };
  return await runner.run(driver, { message, mode, prompt, attachments, load: restarted?.session });
}
