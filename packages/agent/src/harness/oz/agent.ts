import type {
  InitializeResponse,
  NewSessionResponse,
  PromptRequest,
  PromptResponse,
  SessionUpdate,
} from '@agentclientprotocol/sdk';
import { newId } from '../../new-id.ts';
import { protocolVersion } from '../acp.ts';
import { type Engine, turnVoice } from './session.ts';

/** Sends a `session/update`; resolves when there is room for more. */
export type SendUpdate = (sessionId: string, update: SessionUpdate) => Promise<void>;

/** The built-in harness as an ACP v1 agent: its answers to the protocol's methods, whatever carries them. */
export function ozAgent(engine: Engine) {
  const turns = new Map<string, AbortController>();
  return {
    initialize: (): InitializeResponse => ({
      protocolVersion,
      agentInfo: { name: 'oz', version: '1' },
      agentCapabilities: {},
    }),
    newSession: (): NewSessionResponse => ({ sessionId: newId() }),
    async prompt({ sessionId, prompt }: PromptRequest, send: SendUpdate): Promise<PromptResponse> {
      const abort = new AbortController();
      turns.set(sessionId, abort);
      const text = prompt.map((block) => (block.type === 'text' ? block.text : '')).join('');
      try {
        const voice = turnVoice((update) => send(sessionId, update));
        const end = await engine({ prompt: text, voice, signal: abort.signal });
        return { stopReason: abort.signal.aborted ? 'cancelled' : end.stopReason, _meta: { runyard: end.verdict } };
      } finally {
        turns.delete(sessionId);
      }
    },
    cancel: (sessionId: string) => turns.get(sessionId)?.abort(new Error('cancelled')),
  };
}

export type OzAgent = ReturnType<typeof ozAgent>;
