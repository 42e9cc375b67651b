/** Server-sent events of one run, https://html.spec.whatwg.org/multipage/server-sent-events.html */
import { once } from 'node:events';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { followRun } from '../runs/live.ts';
import { isVisibleRun } from '../runs/visible.ts';
import { addRoute } from './add-route.ts';
import type { ServiceDeps } from './deps.ts';
import { invalid, notFound } from './problem.ts';

/** Proxies close connections that are silent for a minute. */
const heartbeatMs = 15_000;

/** Registers `GET /agent/runs/{runId}/events`. */
export function registerLiveRoutes(app: FastifyInstance, { engine, db }: ServiceDeps): void {
  const closing = new AbortController();
  app.addHook('preClose', async () => closing.abort());

  addRoute(app, routes.streamRunEvents, async ({ params, principal, request, reply }) => {
    const lastId = request.headers['last-event-id'];
    const after = lastId === undefined || lastId === '' ? 0 : Number(lastId);
    if (!Number.isSafeInteger(after) || after < 0) {
      return invalid([{ path: 'Last-Event-ID', message: 'must be the id of an event of this stream' }]);
    }
    if (!(await isVisibleRun(db, principal.teamId, params.runId))) return notFound('run');
    const gone = new AbortController();
    request.raw.once('close', () => gone.abort());
    const signal = AbortSignal.any([gone.signal, closing.signal]);
    reply.hijack();
    const stream = reply.raw;
    stream.on('error', () => gone.abort());
    stream.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-request-id': request.id,
    });
    stream.flushHeaders();
    try {
      for await (const next of followRun(engine, params.runId, after, heartbeatMs, signal)) {
        const text = next === null ? ':\n\n' : frame(next.id, next.event);
        // A reader that does not read holds one page of events in memory, no more.
        if (!stream.write(text))
          await Promise.race([once(stream, 'drain', { signal }), once(stream, 'close', { signal })]);
      }
    } catch (error) {
      if (!signal.aborted) request.log.error({ err: error }, 'a live stream broke; its reader resumes');
    }
    stream.end();
    return reply;
  });
}

function frame(id: number | undefined, event: { type: string }): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}
