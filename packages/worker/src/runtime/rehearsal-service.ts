import type { IncomingMessage, ServerResponse } from 'node:http';
import { rehearsalTask } from '@runyard/contract/agent/rehearsal-task';
import { AgentEventBatch } from '@runyard/contract/runs/agent-events';
import { http } from '@runyard/system/node-http';
import { listenOnSocket, type Relay } from '../relay/socket-server.ts';

const prefix = '/api/v1/harness-support/';

/** A request for the inbox is answered after this time at the latest. In a rehearsal, the agent ends earlier. */
const inboxMs = 2000;

async function readJson(message: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of message) text += chunk;
  return JSON.parse(text || '{}');
}

async function answerFor(message: IncomingMessage): Promise<unknown> {
  const [path = ''] = (message.url ?? '').split('?', 1);
  const name = path.startsWith(prefix) ? path.slice(prefix.length) : '';
  if (name === 'resolve-prompt') return rehearsalTask;
  if (name === 'events') {
    const { events } = AgentEventBatch.parse(await readJson(message));
    return { acknowledged: Math.max(0, ...events.map((event) => event.seq)) };
  }
  if (name === 'inbox') {
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, inboxMs);
      message.on('close', () => resolve(clearTimeout(timer)));
    });
    return { items: [] };
  }
  if (name === 'finish-task' || name === 'report-shutdown') return {};
  return undefined;
}

async function respond(message: IncomingMessage, response: ServerResponse): Promise<void> {
  const answer = await answerFor(message).catch(() => undefined);
  response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(answer ?? {}));
}

/**
 * Opens a replacement for the service on a Unix socket, for the rehearsal of an agent. The replacement gives the agent a task without
 * work and accepts the agent's reports.
 */
export async function openRehearsalService(socketPath: string, uid: number | undefined): Promise<Relay> {
  const server = http.createServer((message, response) => void respond(message, response));
  return await listenOnSocket(server, socketPath, uid);
}
