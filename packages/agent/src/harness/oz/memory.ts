import type { ModelMessage } from 'ai';
import type { TurnImage } from './conversation-images.ts';
import type { StepCall } from './model-step.ts';

/** The result of a tool call, which the model gets. */
export interface CallResult {
  readonly text: string;
  readonly failed: boolean;
  /** Images of the result, which are sent in a separate message after the result. */
  readonly images?: readonly TurnImage[];
}

/** The tool calls of the model's last message. The first call without a result waits for a person. */
export interface OpenCalls {
  /** Id of the request to the person. */
  readonly requestId: string;
  readonly calls: readonly StepCall[];
  /** The results so far, each with the id of its call, in the order of the calls. */
  readonly results: readonly (readonly [toolCallId: string, result: CallResult])[];
}

/** The conversation of the model loop, with the metadata that the provider needs in later requests. */
export interface Memory {
  readonly messages: ModelMessage[];
  readonly open?: OpenCalls | undefined;
}

/** Returns the memory as text for an engine in another sandbox. */
export function memoryText({ messages, open }: Memory): string {
  return JSON.stringify(open === undefined ? messages : { messages, open });
}

/** Reads a memory. A text that cannot be parsed counts as an empty memory. */
export function readMemory(text: string | undefined): Memory {
  try {
    const memory: unknown = JSON.parse(text ?? '[]');
    if (Array.isArray(memory)) return { messages: memory };
    const { messages, open } = memory as Memory;
    return Array.isArray(messages) ? { messages, open } : { messages: [] };
  } catch {
    return { messages: [] };
  }
}
