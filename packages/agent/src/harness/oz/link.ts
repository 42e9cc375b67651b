import type { ContentBlock } from '@agentclientprotocol/sdk';
import { storableJson } from '@runyard/contract/wire/storable-json';
import type { AgentLink, LinkEvents } from '../../acp/agent-link.ts';
import { asObject } from '../../acp/tool-output.ts';
import type { OzAgent, SendUpdate } from './agent.ts';

/**
 * Connects the built-in harness in this process. Messages and transcript are the same as those of a harness in a child process. The
 * link uses no second Node process and no SDK, because they would take much of the processor time of a short run.
 */
export function connectOz(agent: OzAgent, events: LinkEvents): AgentLink {
  const closed = new AbortController();
  let nextId = 0;
  let lastUpdate: Promise<void> = Promise.resolve();
  const line = (message: object) => events.line(storableJson({ jsonrpc: '2.0', ...message }));

  async function call<P, R>(method: string, params: P, answer: (params: P) => R | Promise<R>): Promise<R> {
    const id = nextId++;
    line({ id, method, params: withoutImages(params) });
    try {
      const result = await answer(params);
      await lastUpdate;
      line({ id, result });
      return result;
    } catch (error) {
      line({ id, error: { code: -32603, message: error instanceof Error ? error.message : String(error) } });
      throw error;
    }
  }

  /** Sends updates one after another. Waits before each update until the driver can take it. */
  const send: SendUpdate = (sessionId, update) => {
    lastUpdate = lastUpdate
      .then(() => events.ready())
      .then(() => {
        line({ method: 'session/update', params: { sessionId, update } });
        events.update(update);
      });
    return lastUpdate;
  };

  return {
    initialize: (params) => call('initialize', params, agent.initialize),
    newSession: (params) => call('session/new', params, agent.newSession),
    // The driver never calls this method: the built-in harness does not announce that it loads sessions, because it gets its memory when it
    // is created.
    loadSession: () => Promise.reject(new Error('oz loads no sessions')),
    prompt: (params) => call('session/prompt', params, (prompt) => agent.prompt(prompt, send)),
    cancel: (params) => {
      line({ method: 'session/cancel', params });
      agent.cancel(params.sessionId);
    },
    closed: closed.signal,
    isAlive: () => true,
    exited: new Promise(() => {}),
    kill: async () => closed.abort(),
  };
}

/** Returns the parameters for the transcript without the bytes of images, because the run stores these images as attachments. */
function withoutImages(params: unknown): unknown {
  const prompt = asObject(params)?.prompt;
  if (!Array.isArray(prompt)) return params;
  const blocks = prompt.map((block: ContentBlock) =>
    block.type === 'image' ? { ...block, data: '', _meta: { bytes: Buffer.byteLength(block.data, 'base64') } } : block,
  );
  return { ...asObject(params), prompt: blocks };
}
