import type { Stream } from '@agentclientprotocol/sdk';
import { newId } from '../../new-id.ts';
import { type Engine, turnVoice } from './session.ts';

type Sdk = typeof import('@agentclientprotocol/sdk');

/** Serves the built-in harness as an ACP v1 agent on `stream`: the driver knows no difference to one in a child process. */
export function serveOz(sdk: Sdk, stream: Stream, engine: Engine): void {
  const turns = new Map<string, AbortController>();
  sdk
    .agent({ name: 'oz' })
    .onRequest('initialize', () => ({
      protocolVersion: sdk.PROTOCOL_VERSION,
      agentInfo: { name: 'oz', version: '1' },
      agentCapabilities: {},
    }))
    .onRequest('session/new', () => ({ sessionId: newId() }))
    .onRequest('session/prompt', async ({ params, client }) => {
      const abort = new AbortController();
      turns.set(params.sessionId, abort);
      const prompt = params.prompt.map((block) => (block.type === 'text' ? block.text : '')).join('');
      try {
        const end = await engine({ prompt, voice: turnVoice(client, params.sessionId), signal: abort.signal });
        return { stopReason: abort.signal.aborted ? 'cancelled' : end.stopReason, _meta: { runyard: end.verdict } };
      } finally {
        turns.delete(params.sessionId);
      }
    })
    .onNotification('session/cancel', ({ params }) => turns.get(params.sessionId)?.abort(new Error('cancelled')))
    .connect(stream);
}
