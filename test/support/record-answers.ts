/**
 * Setup of every test file: notes which route of each HTTP app in this process gave which status, so that bin/test can
 * compare the statuses that the OpenAPI document declares with those that tests have seen. Fastify announces each app
 * that is made, so that no code of the service knows about it.
 */
import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync } from 'node:fs';
import path from 'node:path';
import { answersVariable } from '../checks/answers.ts';

/** What is used of a Fastify app here. */
interface AnnouncedApp {
  addHook(
    name: 'onResponse',
    hook: (
      request: { readonly method: string; readonly routeOptions: { readonly url?: string } },
      reply: { readonly statusCode: number },
    ) => Promise<void>,
  ): void;
}

const folder = process.env[answersVariable];

if (folder) {
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
