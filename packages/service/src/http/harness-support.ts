/** What the agent inside a sandbox calls, with the token of its execution. */
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { findMemory, keepMemory } from '../conversations/memory.ts';
import { applyAgentEvents } from '../runs/agent-events.ts';
import { finishTask } from '../runs/finish.ts';
import { waitForInbox } from '../runs/inbox.ts';
import { resolveTask } from '../runs/resolve-task.ts';
import { addRoute } from './add-route.ts';
import { bytesOf, tooManyBytes, withByteBodies } from './byte-body.ts';
import type { ServiceDeps } from './deps.ts';
import { downloadHeaders, sendBlob } from './download.ts';
import { notFound, refuse } from './problem.ts';

const superseded = () =>
  refuse('authentication_required', { detail: 'The execution of this run token has ended or was superseded.' });

/** Registers resolve-prompt, events, inbox, finish-task, memory and report-shutdown. */
export function registerHarnessSupport(app: FastifyInstance, deps: ServiceDeps): void {
  const { engine, models } = deps;
  // Agents wait in the inbox for most of the time: the service does not wait for them when it stops.
  const closing = new AbortController();
  app.addHook('preClose', async () => closing.abort());

  addRoute(app, routes.resolvePrompt, async ({ session }) => {
    const resolved = await resolveTask({ db: engine.db, models, settings: deps.settings }, session);
    if (resolved.kind === 'task') return resolved.task;
    if (resolved.kind === 'not_found') return notFound('run');
    const code = resolved.kind === 'environment_gone' ? 'resource_not_found' : 'integration_not_configured';
    const error = { code, message: resolved.message } as const;
    await finishTask(engine, session, { success: false, summary: resolved.message, error });
    return superseded();
  });

  addRoute(app, routes.reportEvents, async ({ session, body }) => {
    const outcome = await applyAgentEvents(engine, session, body.events);
    return outcome === 'superseded' ? superseded() : outcome;
  });

  addRoute(app, routes.readInbox, async ({ session, query, request }) => {
    const gone = new AbortController();
    request.raw.once('close', () => gone.abort());
    const signal = AbortSignal.any([gone.signal, closing.signal]);
    const outcome = await waitForInbox(engine, session, query, query.wait_ms, signal);
    return outcome === 'superseded' ? superseded() : outcome;
  });

  addRoute(app, routes.finishTask, async ({ session, body }) => {
    return { next: await finishTask(engine, session, body) };
  });

  addRoute(app, routes.readMemory, async ({ session, params, reply }) => {
    const key = await findMemory(deps.db, session, params.executionId);
    const stored = key && (await deps.blobs.stat(key));
    if (!stored) return notFound('memory');
    downloadHeaders(reply, 'memory', 'application/octet-stream');
    return (await sendBlob(reply, deps.blobs, { key, sizeBytes: stored.sizeBytes })) ? reply : notFound('memory');
  });

  withByteBodies(app, (scope) => {
    addRoute(scope, routes.keepMemory, async ({ session, query, request, reply }) => {
      const of = { turn: query.turn, requestId: query.request_id };
      if ((await keepMemory(deps, session.executionId, of, bytesOf(request))) === 'stored') return {};
      return tooManyBytes(reply, 'A memory has at most 32 MB.');
    });
  });

  addRoute(app, routes.reportShutdown, async ({ session, body, request }) => {
    request.log.info({ run: session.runId, execution: session.executionId, reason: body.reason }, 'agent leaves');
    return {};
  });
}
