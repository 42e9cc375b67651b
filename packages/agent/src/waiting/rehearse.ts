/**
 * Rehearses a run before the agent gets a real run. The agent loads and compiles all code that a run needs up to its first command, so that
 * the real run starts at once.
 */
import type { AgentInbox, AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { FinishTaskResponse } from '@runyard/contract/agent/finish-task';
import { rehearsalTask } from '@runyard/contract/agent/rehearsal-task';
import type { AgentEventAck } from '@runyard/contract/runs/agent-events';
import type { z } from 'zod';
import { grantedSecrets } from '../granted-secrets/granted-secrets.ts';
import { runAgent } from '../run.ts';
import { serviceClient } from '../service/client.ts';
import { connectToService, type ServiceConnection, type ServiceRequest } from '../service/connection.ts';

/** The answers that the rehearsal gives in place of the service. */
type Answer = AgentTask | z.infer<typeof AgentEventAck> | AgentInbox | FinishTaskResponse | object;

/**
 * The task of the rehearsal. The command of the task contains a NUL, so that it cannot be started, because a real process would take
 * more processor time than the rehearsal saves. Like most tasks, this task allows the agent to save the workspace.
 */
const task: AgentTask = { ...rehearsalTask, prompt: '```sh\n\0\n```\n', max_workspace_bytes: 1 };

export interface Rehearsal {
  readonly serverRoot: string;
  readonly relaySocket: string | undefined;
  readonly workspace: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly temporaryFolder: string;
}

/** Runs a task that has no effects and needs no service. Rejects if the rehearsal fails. */
export async function rehearse(options: Rehearsal): Promise<void> {
  const { workspace, env, temporaryFolder } = options;
  if (options.relaySocket !== undefined) await askRelay(options);
  const client = serviceClient({ connection: playedService(options.serverRoot) });
  const secrets = grantedSecrets(temporaryFolder);
  await runAgent({
    client,
    task: client.resolvePrompt(),
    secrets,
    workspace,
    ownFolders: true,
    isSeparate: false,
    env,
  });
}

/** Sends a request that the relay answers itself, without the service. The request needs no token. */
async function askRelay({ serverRoot, relaySocket }: Rehearsal): Promise<void> {
  const connection = connectToService({ serverRoot, relaySocket, token: '' });
  const request = { method: 'GET', path: '/sandbox/memory', idleTimeoutMs: 5000, lane: 'reports' } as const;
  await connection.call(request, () => 1024);
  connection.close();
}

/** Returns a connection that answers every request itself. */
function playedService(serverRoot: string): ServiceConnection {
  return {
    serverRoot,
    token: '',
    relaySocket: undefined,
    open: () => Promise.reject(new Error('a rehearsal reads no streams')),
    async call(request) {
      const body = Buffer.from(JSON.stringify(await answerTo(request)));
      return { status: 200, retryAfter: undefined, body };
    },
    close: () => {},
  };
}

async function answerTo({ path, body, signal }: ServiceRequest): Promise<Answer> {
  if (path.endsWith('/resolve-prompt')) return task;
  if (path.endsWith('/events') || path.endsWith('/finish-task')) {
    const { events = [] } = JSON.parse(String(body)) as { events?: { seq: number }[] };
    return { acknowledged: Math.max(0, ...events.map(({ seq }) => seq)) };
  }
  // Let the request for the inbox stay open until the run ends.
  if (path.includes('/inbox'))
    await new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
  return {};
}
