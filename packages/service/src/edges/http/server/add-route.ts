import { Readable } from 'node:stream';
import type { AllowKeys, AllowRun } from '@runyard/contract/wire/access';
import { parseUntrusted } from '@runyard/contract/wire/parse-untrusted';
import { plainMessage, plainParameterMessage } from '@runyard/contract/wire/plain-message';
import { apiPrefix, type Route } from '@runyard/contract/wire/route';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Fault } from '../../../platform/fault.ts';
import { isClientAttempt, type RepeatableRequest } from '../../../platform/idempotency/once.ts';
import { invalid, Refusal, refuse } from '../../../platform/serving/refusal.ts';
import type { RunSession } from '../../../runs/executions/run-tokens/sessions.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import { nameChecker } from '../member-names/check-names.ts';
import type { Authorizer } from './authorize.ts';
import type { WatchDelivery } from './delivery.ts';
import { sendStream } from './download.ts';
import { maxValuesOfReport, maxValuesOfRequest } from './json-body.ts';
import { queryDecoder } from './query.ts';
import { repeatableRequest } from './repeatable.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Largest number of values in the JSON of a body. */
    maxBodyValues?: number;
    /** Largest number of bytes in a body without a key. */
    maxKeylessBytes?: number | undefined;
  }
}

/** A hook that throws a 503 while the disk is almost full. */
export type RefuseWhileFull = () => Promise<void>;

/** Encrypts the values of a body that the API must never return. `teamId` is absent if the request has no caller. */
export type SealConfig = (teamId: string | undefined, body: unknown) => Promise<unknown>;

type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined;

/** An authorized request whose parts match the schemas of the route. */
export interface Call<R extends Route> {
  readonly params: Parsed<R['params']>;
  readonly query: Parsed<R['query']>;
  readonly body: Parsed<R['body']>;
  /** Owner of the key, on routes that accept keys. Null if the route does not require a key and the request has no key. */
  readonly principal: R['allow'] extends AllowKeys
    ? R['allow'] extends { readonly publicThings: true } | { readonly keylessBytes: number }
      ? Principal | null
      : Principal
    : null;
  /** Execution of the run token, on routes that accept run tokens. */
  readonly session: R['allow'] extends AllowRun ? RunSession : null;
  /** Identity of a repeatable request; only for routes that declare `once`. */
  readonly once: RepeatableRequest | undefined;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

type Answer<R extends Route> = R['tagged'] extends true
  ? FastifyReply
  : R['answer'] extends { schema: infer S extends z.ZodType }
    ? z.output<S> | Readable
    : FastifyReply;

/** A handler returns the body of the answer, a stream with its JSON, a refusal, or the reply if the handler has sent it. */
export type Handler<R extends Route> = (call: Call<R>) => Promise<Answer<R> | Refusal>;

/** Returns the path of a route in the form of fastify. */
const fastifyPath = (route: Pick<Route, 'path'>): string => apiPrefix + route.path.replaceAll(/\{(\w+)\}/g, ':$1');

const defaultBodyLimitBytes = 1024 * 1024;

function parse(
  part: 'path' | 'query' | 'body',
  schema: z.ZodType | undefined,
  value: unknown,
  faults: Fault[],
): unknown {
  if (!schema) return undefined;
  const result = parseUntrusted(schema, value, { error: part === 'query' ? plainParameterMessage : plainMessage });
  if (result.success) return result.data;
  for (const { path, message } of result.error.issues.slice(0, 50))
    faults.push({ path: path.map(String).join('.'), message });
  if (value === undefined && part === 'body')
    faults.splice(0, faults.length, { path: '', message: 'a JSON body is required' });
  return undefined;
}

/**
 * Registers one endpoint of the contract: authorizes before the body is read, checks path, query and body, and sends the value that the
 * handler returns. Answers are not validated here: tests check their schemas, and tsc checks their types.
 */
export function addRoute<const R extends Route>(app: FastifyInstance, route: R, handler: Handler<R>): void {
  const authorizer = app.getDecorator<Authorizer>('authorizer');
  const authorize = authorizer.forRoute(route.allow);
  const checkNames = nameChecker(route);
  const decodeQuery = route.query && queryDecoder(route.query);
  const refuseWhileFull = app.getDecorator<RefuseWhileFull>('refuseWhileFull');
  const watchDelivery = app.getDecorator<WatchDelivery>('watchDelivery');
  const sealConfig = app.getDecorator<SealConfig>('sealConfig');
  const stores = route.method !== 'GET' && route.method !== 'DELETE' && !route.endsSomething;
  const { answer } = route;
  app.route({
    method: route.method,
    url: fastifyPath(route),
    bodyLimit: route.bodyLimitBytes ?? defaultBodyLimitBytes,
    config: {
      maxBodyValues: 'run' in route.allow ? maxValuesOfReport : maxValuesOfRequest,
      maxKeylessBytes: 'user' in route.allow ? route.allow.keylessBytes : undefined,
    },
    onRequest: stores ? [authorize, refuseWhileFull] : authorize,
    handler: async (request, reply) => {
      // Refuse NUL here, because no id contains NUL, and the database cannot search for it.
      if (Object.values(request.params as object).some((each) => String(each).includes('\0')))
        throw refuse('resource_not_found', { detail: 'There is nothing at this path.' });
      const faults = checkNames(request, reply);
      const params = parse('path', route.params, request.params, faults);
      const query = decodeQuery && parse('query', route.query, decodeQuery(request.query), faults);
      const sentBody = parse('body', route.body, request.body, faults);
      if (faults.length > 0) throw invalid(faults);
      authorizer.checkBody(route.allow, request, sentBody);
      const caller = authorizer.callerOf(request);
      const body = await sealConfig(caller.principal?.teamId ?? caller.session?.teamId, sentBody);
      const once = repeatableRequest(route, request, reply, caller, { params, body });
      if (isClientAttempt(once)) watchDelivery(reply, once);
      if ('run' in route.allow && route.allow.startsRuns) await authorizer.checkRun(request);
      const call = {
        params,
        query,
        body,
        ...caller,
        once,
        request,
        reply,
      } as Call<R>;
      const result = await handler(call);
      if (result instanceof Refusal) throw result;
      if (answer.schema && !route.tagged) {
        // No cache may store an answer, because each answer is for one caller, and signed URLs in an answer expire.
        reply.header('cache-control', 'no-store');
        reply.code(answer.status).type('application/json; charset=utf-8');
        return result instanceof Readable ? sendStream(reply, result) : reply.send(JSON.stringify(result));
      }
      return result;
    },
  });
}
