import { joinHalves } from '@runyard/contract/wire/shorten';
import { type ModelMessage, streamText, type ToolResultPart, type ToolSet } from 'ai';
import { newId } from '../../new-id.ts';
import type { ModelAccess } from './providers.ts';
import type { TurnVoice } from './session.ts';

export interface StepCall {
  toolCallId: string;
  toolName: string;
  input: unknown;
  /** The message for the model if the SDK could not parse the input or does not know the tool. */
  invalid: string | undefined;
}

/** One answer of the model. */
export interface StepAnswer {
  /** The assistant's messages for the next request, with the metadata of the provider. */
  messages: ModelMessage[];
  calls: StepCall[];
  finishReason: string;
}

/** Thrown if the stream ended before the provider said that the answer was finished. */
class CutAnswer extends Error {
  override name = 'CutAnswer';
}

/** The text of an answer so far. The loop uses this text if the answer is aborted. */
export interface PartialAnswer {
  text: string;
}

/**
 * Sends one request to the model and reports the text of the answer while the text arrives. The caller repeats failed requests,
 * because the SDK does not repeat a request whose stream breaks off. In version 7 of the SDK, `response.messages` has only the
 * messages of this request.
 */
export async function modelStep(
  access: ModelAccess,
  request: { instructions: string; messages: ModelMessage[]; tools: ToolSet; signal: AbortSignal },
  voice: TurnVoice,
  partial: PartialAnswer,
): Promise<StepAnswer> {
  const result = streamText({
    model: access.model,
    providerOptions: access.providerOptions,
    instructions: request.instructions,
    messages: request.messages,
    tools: request.tools,
    maxRetries: 0,
    abortSignal: request.signal,
    telemetry: { isEnabled: false },
    // Replace the SDK's default handler, which prints to the console. The error is not lost, because it is also in the stream.
    onError: () => {},
  });
  const messages = new Map<string, { readonly id: string; readonly halves: ReturnType<typeof joinHalves> }>();
  const thoughtHalves = joinHalves();
  const say = async (text: string, messageId: string) => {
    if (text === '') return;
    partial.text += text;
    await voice.say(text, messageId);
  };
  const think = async (text: string) => {
    if (text !== '') await voice.think(text);
  };
  const calls: StepCall[] = [];
  let finishReason = 'other';
  let finished = false;
  for await (const part of result.stream) {
    switch (part.type) {
      case 'text-delta': {
        if (part.text === '') break;
        const message = messages.get(part.id) ?? { id: newId(), halves: joinHalves() };
        messages.set(part.id, message);
        await say(message.halves.push(part.text), message.id);
        break;
      }
      case 'text-end': {
        const message = messages.get(part.id);
        if (message) await say(message.halves.end(), message.id);
        break;
      }
      case 'reasoning-delta':
        await think(thoughtHalves.push(part.text));
        break;
      case 'reasoning-end':
        await think(thoughtHalves.end());
        break;
      case 'tool-call':
        calls.push({
          toolCallId: part.toolCallId,
          toolName: part.toolName,
          input: part.input,
          invalid: part.invalid ? 'invalid' : undefined,
        });
        break;
      case 'tool-error': {
        const call = calls.find((each) => each.toolCallId === part.toolCallId);
        if (call !== undefined) call.invalid = String(part.error);
        break;
      }
      case 'finish-step':
        finishReason = part.finishReason;
        // If a stream ends without a final event of the provider, the reason is `other` and the usage is missing.
        finished =
          part.finishReason !== 'other' || part.rawFinishReason !== undefined || part.usage.outputTokens !== undefined;
        break;
      case 'error':
        throw part.error;
      case 'abort':
        throw request.signal.reason ?? new Error('aborted');
      default:
    }
  }
  request.signal.throwIfAborted();
  if (!finished && calls.length === 0) throw new CutAnswer('the answer ended before it was finished');
  return { messages: (await result.response).messages, calls, finishReason };
}

/**
 * Returns all results of one step in one message, in the order of the calls. An invalid call has the message of the SDK as its
 * result.
 */
export function toolMessage(
  calls: readonly StepCall[],
  results: ReadonlyMap<string, { text: string; failed: boolean }>,
): ModelMessage {
  const content = calls.map((call): ToolResultPart => {
    const result = results.get(call.toolCallId) ?? { text: call.invalid ?? 'interrupted', failed: true };
    return {
      type: 'tool-result',
      toolCallId: call.toolCallId,
      toolName: call.toolName,
      output: result.failed ? { type: 'error-text', value: result.text } : { type: 'text', value: result.text },
    };
  });
  return { role: 'tool', content };
}
