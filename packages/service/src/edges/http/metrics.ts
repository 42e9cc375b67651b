/** `GET /metrics`, on a separate port, or with a token on the port of the API. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Server } from 'node:http';
import type { Settings } from '@runyard/contract/settings/settings';
import { answerInTurn } from '@runyard/system/answer-in-turn';
import { http } from '@runyard/system/node-http';
import type { FastifyInstance } from 'fastify';
import type { Metrics } from '../../platform/metrics/open-metrics.ts';
import { count } from '../../platform/metrics/record.ts';
import { refuse } from '../../platform/serving/refusal.ts';
import { bearerToken } from './server/authorize.ts';

const textType = 'text/plain; version=0.0.4; charset=utf-8';

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Returns whether a request has the token; true if no token is configured. */
function opensWith(token: string | undefined): (authorization: string | undefined) => boolean {
  if (token === undefined) return () => true;
  const expected = digest(token);
  return (authorization) => {
    const isRight = timingSafeEqual(digest(bearerToken(authorization ?? '')), expected);
    if (!isRight) count('runyard_authentication_failures_total', { credential: 'metrics' });
    return isRight;
  };
}

/** Registers `/metrics` on the port of the API if a token and no separate port is configured. */
export function registerMetrics(
  app: FastifyInstance,
  { metrics, settings }: { readonly metrics?: Metrics | undefined; readonly settings: Settings },
): void {
  const token = settings.RUNYARD_METRICS_TOKEN;
  if (!metrics || token === undefined || settings.RUNYARD_METRICS_LISTEN !== undefined) return;
  const opens = opensWith(token);
  app.get('/metrics', async (request, reply) => {
    if (!opens(request.headers.authorization))
      throw refuse('authentication_required', {
        detail: 'Send the header Authorization: Bearer <RUNYARD_METRICS_TOKEN>.',
      });
    return await reply
      .header('cache-control', 'no-store')
      .type(textType)
      .send(await metrics.text());
  });
}

/** Makes the server of the port for metrics. The server answers no other request. */
export function makeMetricsServer(metrics: Metrics, token: string | undefined): Server {
  const opens = opensWith(token);
  const server = http.createServer({ requestTimeout: 10_000, headersTimeout: 5_000 }, (request, response) => {
    const answer = (status: number, text: string, headers: Record<string, string> = {}): void => {
      const common = { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' };
      response.writeHead(status, { ...common, ...headers }).end(text);
    };
    request.resume();
    if (request.url?.split('?')[0] !== '/metrics') return answer(404, 'This port serves only /metrics.\n');
    if (request.method !== 'GET') return answer(405, '/metrics accepts only GET.\n', { allow: 'GET' });
    if (!opens(request.headers.authorization))
      return answer(401, 'Send the header Authorization: Bearer <RUNYARD_METRICS_TOKEN>.\n', {
        'www-authenticate': 'Bearer',
      });
    return void metrics.text().then(
      (text) => answer(200, text, { 'content-type': textType }),
      () => answer(500, 'The metrics could not be read.\n'),
    );
  });
  answerInTurn(server);
  server.maxConnections = 100;
  return server;
}
