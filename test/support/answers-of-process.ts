/**
 * Records the statuses that each route of the HTTP apps in this process returned. bin/test compares them with the statuses in the OpenAPI
 * document. Fastify announces each new app on a diagnostics channel, so the service needs no code for this.
 */
import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync } from 'node:fs';
import path from 'node:path';

/**
 * Name of the environment variable with the folder for the recorded answers. Each line of a file there is a method, a route and a
 * status.
 */
export const answersVariable = 'CHECKS_ANSWERS';

/** The part of a Fastify app that this module uses. */
interface AnnouncedApp {
  addHook(
    name: 'onResponse',
    hook: (
      request: { readonly method: string; readonly routeOptions: { readonly url?: string } },
      reply: { readonly statusCode: number },
    ) => Promise<void>,
  ): void;
}

let isRecording = false;

/** Begins to write the answers to a file of this process in `folder`. Further calls do nothing. */
export function recordAnswers(folder: string): void {
  if (isRecording) return;
  isRecording = true;
  const file = path.join(folder, `${process.pid}.txt`);
  const seen = new Set<string>();
  subscribe('fastify.initialization', (message) => {
    const { fastify } = message as { fastify: AnnouncedApp };
    fastify.addHook('onResponse', async (request, reply) => {
      if (request.routeOptions.url === undefined) return;
      const line = `${request.method} ${request.routeOptions.url} ${reply.statusCode}\n`;
      if (seen.has(line)) return;
      seen.add(line);
      appendFileSync(file, line);
    });
  });
}
