import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { FastifyInstance } from 'fastify';
import { cachedAnswer } from '../server/cached-answer.ts';

/** For a script that runs as a worker, the policy in the headers of the script applies, not the policy of the page. */
export const workerPolicy = "default-src 'none'; script-src 'self'";

/**
 * Registers the style sheet of the pages that are not the dashboard. It begins with the style sheet of the dashboard, if the dashboard is
 * built.
 */
export async function registerAssets(app: FastifyInstance, dashboardSheet: () => string): Promise<void> {
  const own = await readFile(path.join(import.meta.dirname, 'assets/pages.css'), 'utf8');
  const sendSheet = cachedAnswer(dashboardSheet, (sheet) => sheet + own);
  app.get('/assets/pages.css', async (_request, reply) => await sendSheet(reply.type('text/css; charset=utf-8')));
}
