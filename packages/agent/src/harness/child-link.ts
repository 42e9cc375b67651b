import { client } from '@agentclientprotocol/sdk';
import type { AgentLink } from '../acp/agent-link.ts';
import { asObject } from '../acp/tool-output.ts';
import { killProcesses, listMarked, listVisible } from '../commands/processes.ts';
import { type ChildHarnessOptions, startChildHarness } from './child-transport.ts';
import { withDiffTexts } from './diff-text.ts';

export interface ChildLinkOptions extends ChildHarnessOptions {
  /** True: all visible processes belong to this run, because the sandbox has separate processes. */
  readonly hasOwnProcesses?: boolean;
  /** Returns processes of the run that the harness did not start. */
  readonly spared?: () => readonly number[];
}

/** Starts an ACP agent as a child process and connects the protocol's SDK to it. */
export function startChildLink(options: ChildLinkOptions): AgentLink {
  const { marker, events } = options;
  const { readable, writable, isAlive, strayLines, exited, kill } = startChildHarness({
    ...options,
    events: { ...events, update: (update, sessionId) => events.update(withDiffTexts(update), sessionId) },
  });
  // List all visible processes if possible, and not only those with the marker, because some harnesses start their commands with an
  // environment that has no marker.
  const list = () => (options.hasOwnProcesses ? listVisible() : listMarked(marker));
  let before: ReadonlySet<number> = new Set();
  const connection = client({ name: 'runyard' })
    // Do not parse the parameters with the SDK's schema, because the schema refuses unknown members.
    .onRequest(
      'session/request_permission',
      (params: unknown) => asObject(params) ?? {},
      async ({ params }) => {
        const optionId = await events.permission({ ...params, toolCall: withDiffTexts(params.toolCall) });
        return { outcome: optionId === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId } };
      },
    )
    .connect({ readable, writable });
  return {
    initialize: (params) => connection.agent.request('initialize', params),
    newSession: (params) => connection.agent.request('session/new', params),
    loadSession: (params) => connection.agent.request('session/load', params),
    setMode: (params) => connection.agent.request('session/set_mode', params),
    prompt: (params) => connection.agent.request('session/prompt', params),
    cancel: (params) => void connection.agent.notify('session/cancel', params).catch(() => {}),
    closed: connection.signal,
    isAlive,
    strayLines,
    exited,
    beginTurn: () => {
      before = new Set(list());
    },
    endStrays: () => void killProcesses(list(), new Set([...before, ...(options.spared?.() ?? [])])),
    kill: async () => {
      await kill();
      connection.close();
    },
  };
}
