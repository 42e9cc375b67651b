import { client } from '@agentclientprotocol/sdk';
import type { AgentLink } from '../acp/agent-link.ts';
import { asObject } from '../acp/tool-output.ts';
import { type ChildHarnessOptions, startChildHarness } from './child-transport.ts';

/** Starts an ACP agent as a child process and connects the protocol's SDK to it. */
export function startChildLink(options: ChildHarnessOptions): AgentLink {
  const { readable, writable, isAlive, exited, kill } = startChildHarness(options);
  const connection = client({ name: 'runyard' })
    // Parsed without the SDK's schema, which refuses unknown members.
    .onRequest(
      'session/request_permission',
      (params: unknown) => asObject(params) ?? {},
      async ({ params }) => {
        const optionId = await options.events.permission(params);
        return { outcome: optionId === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId } };
      },
    )
    .connect({ readable, writable });
  return {
    initialize: (params) => connection.agent.request('initialize', params),
    newSession: (params) => connection.agent.request('session/new', params),
    loadSession: (params) => connection.agent.request('session/load', params),
    prompt: (params) => connection.agent.request('session/prompt', params),
    cancel: (params) => void connection.agent.notify('session/cancel', params).catch(() => {}),
    closed: connection.signal,
    isAlive,
    exited,
    kill: async () => {
      await kill();
      connection.close();
    },
  };
}
