import type { ModelMessage } from 'ai';
import type { StepCall } from './model-step.ts';

/** What came out of a call, for the model. */
export interface CallResult {
  readonly text: string;
  readonly failed: boolean;
}

/** The calls of the last message, of which the first without a result waits for a person. */
export interface OpenCalls {
  /** Of what the person was asked. */
  readonly requestId: string;
  readonly calls: readonly StepCall[];
  /** By the call's id, in order. */
  readonly results: readonly (readonly [toolCallId: string, result: CallResult])[];
}

/** The conversation as the model loop has it, provider metadata included. */
export interface Memory {
  readonly messages: ModelMessage[];
  readonly open?: OpenCalls | undefined;
}

/** For an engine in another sandbox. */
export function memoryText({ messages, open }: Memory): string {
  return JSON.stringify(open === undefined ? messages : { messages, open });
}

/** One that cannot be read is as good as none. */
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
