import type { ContentBlock } from '@agentclientprotocol/sdk';
import { storableJson } from '@runyard/contract/storable-json';
import type { AgentLink, LinkEvents } from '../../acp/agent-link.ts';
import { asObject } from '../../acp/tool-output.ts';
import type { OzAgent, SendUpdate } from './agent.ts';

/**
 * Connects the built-in harness in this process: the same messages and the same transcript as over stdio, without a
 * second Node and without the SDK on both ends. Loading the SDK with its schemas and shaking hands with itself
 * costs a short run much of its processor time (`bench/modules.md`).
 */
export function connectOz(agent: OzAgent, events: LinkEvents): AgentLink {
  const closed = new AbortController();
  let nextId = 0;
  let told: Promise<void> = Promise.resolve();
  const line = (message: object) => events.line(storableJson({ jsonrpc: '2.0', ...message }));

  async function call<P, R>(method: string, params: P, answer: (params: P) => R | Promise<R>): Promise<R> {
    const id = nextId++;
    line({ id, method, params: withoutImages(params) });
    try {
      const result = await answer(params);
      await told;
      line({ id, result });
      return result;
    } catch (error) {
      line({ id, error: { code: -32603, message: error instanceof Error ? error.message : String(error) } });
      throw error;
    }
  }

  /** One after another, each when there is room. */
  const send: SendUpdate = (sessionId, update) => {
    told = told
      .then(() => events.ready())
      .then(() => {
        line({ method: 'session/update', params: { sessionId, update } });
        events.update(update);
      });
    return told;
  };

  return {
    initialize: (params) => call('initialize', params, agent.initialize),
    newSession: (params) => call('session/new', params, agent.newSession),
    // Never announced: it is given its memory when it is made.
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

/** The transcript names images, it does not hold their bytes: the run's attachments do. */
function withoutImages(params: unknown): unknown {
  const prompt = asObject(params)?.prompt;
  if (!Array.isArray(prompt)) return params;
  const shown = prompt.map((block: ContentBlock) =>
    block.type === 'image' ? { ...block, data: '', _meta: { bytes: Buffer.byteLength(block.data, 'base64') } } : block,
  );
  return { ...asObject(params), prompt: shown };
}
