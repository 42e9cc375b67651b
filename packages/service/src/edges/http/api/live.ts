/** Server-sent events of one run, and of all runs and deliveries of a team. */
import type { OutgoingHttpHeaders } from 'node:http';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { invalid, notFound, type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import { cut, drained, end, leave, type Outlet, type Stream } from '../../live/feed.ts';
import { idBytes, retryBytes } from '../../live/frame.ts';
import { openLive } from '../../live/live.ts';
import { afterRow, findRunPlace, parseRunPosition } from '../../live/run-events.ts';
import { makeStreamPlaces, type StreamsTaken } from '../../live/stream-places.ts';
import { addRoute } from '../server/add-route.ts';
import { openFilesLimit } from '../server/connection-limits.ts';
import type { ServiceDeps } from '../server/deps.ts';

/** Readers wait for a random time in this range, so they do not all connect at the same moment after a restart of the service. */
const retryMs = { from: 500, to: 1_500 };

const notOfStream = (): Refusal =>
  invalid([{ path: 'Last-Event-ID', message: 'must be the id of an event of this stream' }]);

const gone = (): Refusal =>
  refuse('resource_not_found', {
    status: 410,
    detail: 'Events after Last-Event-ID are no longer stored. Connect again without Last-Event-ID.',
  });

const owners = { key: 'The key', team: 'The team', process: 'The service' } as const;

const tooManyStreams = ({ by, most }: StreamsTaken): Refusal =>
  refuse('resource_unavailable', {
    detail: `${owners[by]} has ${most} event streams open, and can have no more. Close those that are not needed; GET /agent/runs/events follows all runs of the team in one.`,
    headers: { 'retry-after': '30' },
  });

/** Returns the `Last-Event-ID` of a request; undefined if it is absent or empty. */
function lastIdOf(request: FastifyRequest): string | undefined {
  const id = request.headers['last-event-id'];
  return typeof id === 'string' && id !== '' ? id : undefined;
}

/** Registers the streams of runs, teams and deliveries. The streams are cut when their key is revoked. */
export async function registerLiveRoutes(
  app: FastifyInstance,
  { executionDeps: deps, db, keyWatch, settings }: Pick<ServiceDeps, 'executionDeps' | 'db' | 'keyWatch' | 'settings'>,
): Promise<void> {
  const live = await openLive(deps);
  const places = makeStreamPlaces(settings.RUNYARD_EVENT_STREAMS, openFilesLimit());
  let isClosing = false;
  app.addHook('preClose', async () => {
    isClosing = true;
    live.stop();
  });

  /** Answers with a stream. `open` creates the stream, which writes its first events at once. */
  const answer = (
    request: FastifyRequest,
    reply: FastifyReply,
    key: Principal,
    first: Buffer,
    open: (outlet: Outlet) => Stream<unknown>,
  ): FastifyReply | Refusal => {
    const place = places.enter(key);
    if (typeof place !== 'function') return tooManyStreams(place);
    reply.hijack();
    const response = reply.raw;
    response.on('error', () => response.destroy());
    response.on('close', place);
    // If the client has already closed the connection, `close` is not emitted again.
    if (response.destroyed) place();
    response.writeHead(200, {
      // Headers that the reply had before the hijack, such as X-Ignored-Fields.
      ...(reply.getHeaders() as OutgoingHttpHeaders),
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    if (request.method === 'HEAD') {
      response.end();
      return reply;
    }
    response.write(first);
    const stream = open({
      write: (bytes) => response.write(bytes),
      end: () => void response.end(),
      cut: () => void response.destroy(),
    });
    live.pulse.add(stream);
    response.on('drain', () => drained(stream));
    const unwatchKey = keyWatch.watch(key, 'stream', () => cut(stream));
    const forget = () => {
      unwatchKey();
      leave(stream);
      live.pulse.remove(stream);
    };
    response.on('close', forget);
    // If the client closed the connection while the run was looked up, `close` was already emitted.
    if (response.destroyed) forget();
    if (isClosing) end(stream);
    return reply;
  };
  const retry = () => retryBytes(retryMs.from + (retryMs.to - retryMs.from) * Math.random());

  addRoute(app, routes.streamRunEvents, async ({ params: { runId }, query, principal, request, reply }) => {
    const lastId = lastIdOf(request);
    const position = lastId === undefined ? 0 : parseRunPosition(lastId);
    const run = { teamId: principal.teamId, runId };
    const place = isUuid(runId) ? await findRunPlace(db, run, position ?? 0) : null;
    if (!place) return notFound('run');
    if (position === null || position > afterRow(place.lastSeq)) return notOfStream();
    if (lastId !== undefined && (position < place.keptAfter || place.isInsideMerged)) return gone();
    const start = {
      runId: runId.toLowerCase(),
      position,
      floor: place.keptAfter,
      lastSeq: place.lastSeq,
      ...(query.follow === false ? { until: afterRow(place.lastSeq) } : {}),
    };
    return answer(request, reply, principal, retry(), (outlet) => live.runs.open(start, outlet));
  });

  for (const [route, feeds] of [
    [routes.streamTeamEvents, live.teams],
    [routes.streamTeamDeliveries, live.deliveries],
  ] as const)
    addRoute(app, route, async ({ principal, request, reply }) => {
      const start = await feeds.find(lastIdOf(request));
      if (start.kind === 'unknown') return notOfStream();
      if (start.kind === 'gone') return gone();
      const first = Buffer.concat([retry(), idBytes(feeds.idOf(start.position))]);
      return answer(request, reply, principal, first, (outlet) => feeds.open(principal.teamId, start, outlet));
    });
}
