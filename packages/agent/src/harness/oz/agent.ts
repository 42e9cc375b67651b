import type {
  InitializeResponse,
  NewSessionResponse,
  PromptRequest,
  PromptResponse,
  ResourceLink,
  SessionUpdate,
} from '@agentclientprotocol/sdk';
import { protocolVersion } from '../../acp/agent-link.ts';
import { planOnly } from '../../acp/plan-mode.ts';
import { newId } from '../../new-id.ts';
import { type Engine, turnVoice } from './session.ts';

/** Sends a `session/update`. Resolves when the next update can be sent. */
export type SendUpdate = (sessionId: string, update: SessionUpdate) => Promise<void>;

/**
 * A member of `_meta` that marks a text block of a prompt: the block contains a person's decision about a request of an earlier sandbox.
 */
export const answerMeta = 'runyard.answer';

/** Returns the functions with which the built-in harness answers the methods of ACP v1. */
export function ozAgent(engine: Engine, { seesImages }: { seesImages: boolean }) {
  const turns = new Map<string, AbortController>();
  return {
    initialize: (): InitializeResponse => ({
      protocolVersion,
      agentInfo: { name: 'oz', version: '1' },
      agentCapabilities: { promptCapabilities: { image: seesImages } },
    }),
    newSession: (): NewSessionResponse => ({ sessionId: newId() }),
    async prompt({ sessionId, prompt }: PromptRequest, send: SendUpdate): Promise<PromptResponse> {
      const abort = new AbortController();
      turns.set(sessionId, abort);
      const texts = prompt.flatMap((block) => (block.type === 'text' ? [block] : []));
      const textOf = (blocks: typeof texts) => blocks.map(({ text }) => text).join('\n\n');
      const text = textOf(texts.filter(({ _meta }) => _meta?.[answerMeta] !== true));
      const files = prompt.flatMap((block) => (block.type === 'resource_link' ? [fileLine(block)] : []));
      const images = prompt.flatMap((block) => (block.type === 'image' ? [block] : []));
      try {
        const voice = turnVoice((update) => send(sessionId, update));
        const end = await engine({
          prompt: text,
          promptWithAnswer: textOf(texts),
          isPlan: texts.some((block) => block.text.includes(planOnly)),
          files,
          images,
          voice,
          signal: abort.signal,
        });
        return { stopReason: abort.signal.aborted ? 'cancelled' : end.stopReason, _meta: { runyard: end.verdict } };
      } finally {
        turns.delete(sessionId);
      }
    },
    cancel: (sessionId: string) => turns.get(sessionId)?.abort(new Error('cancelled')),
  };
}

function fileLine({ uri, mimeType, size }: ResourceLink): string {
  return `${decodeURI(uri.replace(/^file:\/\//, ''))} (${mimeType ?? 'unknown type'}, ${size ?? 'unknown'} bytes)`;
}

export type OzAgent = ReturnType<typeof ozAgent>;
