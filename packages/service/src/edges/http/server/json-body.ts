import { isUtf8 } from 'node:buffer';
import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { BodyBudget } from '../../../platform/bodies/body-budget.ts';
import { holdBody } from '../../../platform/bodies/request-bodies.ts';
import { scanJson } from '../../../platform/bodies/scan-json.ts';
import type { Fault } from '../../../platform/fault.ts';
import { invalid, refuse, tooBusy } from '../../../platform/serving/refusal.ts';
import type { Authorizer } from './authorize.ts';

/** Makes JSON the only type of body that the app accepts. A body uses memory of the budget `bodies` until its request is answered. */
export function parseJsonBodies(
  app: FastifyInstance,
  { authorizer, bodies }: { readonly authorizer: Authorizer; readonly bodies: BodyBudget },
): void {
  // The response is a property of the request, because a WeakMap would make each garbage collection slower.
  app.decorateRequest('response', null);
  app.addHook('onRequest', (request, reply, done) => {
    request.setDecorator('response', reply.raw);
    done();
  });

  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', async (request: FastifyRequest) => {
    refuseCoding(request.headers['content-encoding']);
    const { principal, session } = authorizer.callerOf(request);
    const { bodyLimit, config } = request.routeOptions;
    const keylessBytes = principal ? undefined : config.maxKeylessBytes;
    const received = await holdBody(bodies, {
      request: request.raw,
      response: request.getDecorator<ServerResponse>('response'),
      owner: { teamId: session?.teamId ?? principal?.teamId, executionId: session?.executionId },
      maxBytes: keylessBytes ?? bodyLimit,
    });
    switch (received.kind) {
      case 'body':
        return await parseJsonBody(received.bytes, config.maxBodyValues);
      case 'busy':
        throw tooBusy('Too many requests with a body wait already, of this caller or of all.');
      case 'too_large':
        throw refuse('invalid_request', {
          status: 413,
          detail: keylessBytes
            ? `The body is too large: without a key it has at most ${keylessBytes} bytes. Send a key, or a smaller body.`
            : 'The body is too large.',
        });
      case 'too_slow':
        throw refuse('invalid_request', { status: 408, detail: 'The body came too slowly.' });
      case 'cut':
        throw refuse('invalid_request', { detail: 'The number of bytes in the body differs from its Content-Length.' });
    }
  });
}

const maxDepth = 100;
const maxFaults = 20;
const maxExplainedBytes = 64 * 1024;
/**
 * Largest number of values in a body. A body of 64 MB may contain 20 million empty arrays, which take gigabytes. The check of each wrong
 * value also takes time in which no other request is answered. A normal request has a few dozen values.
 */
export const maxValuesOfRequest = 20_000;

/** Largest number of values in an agent's report. A batch has at most half a megabyte, but may be a list of numbers. */
export const maxValuesOfReport = 300_000;

function textFault(text: string): string | undefined {
  if (text.includes('\u0000')) return 'must not contain the NUL character (U+0000)';
  return text.isWellFormed() ? undefined : 'must not contain half of a surrogate pair';
}

/**
 * Finds values that PostgreSQL cannot store as jsonb or text, or that would harm a merge: U+0000 and lone surrogates in strings and names,
 * `__proto__`, and more than 100 levels of nesting.
 */
function findUnstorable(root: unknown): Fault[] {
  const faults: Fault[] = [];
  const path: (string | number)[] = [];
  const note = (message: string | undefined) => {
    if (!message) return;
    faults.push({ path: path.join('.').replaceAll('\u0000', '\\u0000').toWellFormed(), message });
  };
  /** Returns false if the value is nested too deeply, or if enough faults were found. */
  const visit = (value: unknown): boolean => {
    if (typeof value === 'string') note(textFault(value));
    if (typeof value !== 'object' || value === null) return faults.length < maxFaults;
    if (path.length >= maxDepth) {
      faults.splice(0, faults.length, { path: '', message: `must not nest deeper than ${maxDepth} levels` });
      return false;
    }
    const isArray = Array.isArray(value);
    const members: readonly unknown[] = isArray ? value : Object.values(value);
    const names = isArray ? null : Object.keys(value);
    for (let index = 0; index < members.length; index += 1) {
      const name = names?.[index] ?? index;
      path.push(name);
      if (typeof name === 'string') note(name === '__proto__' ? 'is not allowed as a name' : textFault(name));
      if (!visit(members[index])) return false;
      path.pop();
    }
    return true;
  };
  visit(root);
  return faults;
}

/** Throws a 415 refusal for a compressed body (RFC 9110, 15.5.16), because a small compressed body could use any amount of memory. */
export function refuseCoding(contentEncoding: string | undefined): void {
  if (['', 'identity'].includes((contentEncoding ?? '').toLowerCase())) return;
  throw refuse('invalid_request', {
    status: 415,
    detail: `The body has the Content-Encoding ${contentEncoding?.slice(0, 40)}. Send it without one.`,
    headers: { 'accept-encoding': 'identity' },
  });
}

/**
 * Parses a JSON body, which must not be used afterwards. Returns `undefined` for an empty body. The values are counted first, in slices, so that the process is not blocked by
 * a body with many values. Throws a 400 refusal.
 */
export async function parseJsonBody(body: Buffer, maxValues = maxValuesOfRequest): Promise<unknown> {
  if (body.length === 0) return undefined;
  if (!isUtf8(body)) throw invalid([{ path: '', message: 'the body is not valid UTF-8' }]);
  // A body of this size cannot contain more values, because each value needs at least two bytes: one byte and a separator.
  const value = body.length <= 2 * maxValues ? parseText(body) : await parseCounted(body, maxValues);
  const faults = findUnstorable(value);
  if (faults.length > 0) throw invalid(faults);
  return value;
}

/** Size from which the memory of a body is freed before its values are created. */
const largeBytes = 1024 * 1024;

/**
 * Returns the text of a body. Frees the memory of a large body at once, because its text and its values need as much memory again, and the
 * garbage collection would free the memory only later. The body must not be used afterwards.
 */
function takeText(body: Buffer): string {
  const text = body.toString('utf8');
  const { buffer, byteLength } = body;
  if (byteLength >= largeBytes && buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
  return text;
}

function parseText(body: Buffer): unknown {
  try {
    return JSON.parse(takeText(body));
  } catch (error) {
    throw notJson(error instanceof SyntaxError ? `: ${error.message}`.slice(0, 200) : '');
  }
}

const notJson = (reason: string) => invalid([{ path: '', message: `the body is not valid JSON${reason}` }]);

async function parseCounted(body: Buffer, maxValues: number): Promise<unknown> {
  const scanned = await scanJson(body, { maxValues, maxDepth });
  switch (scanned.kind) {
    case 'too_many_values':
      throw invalid([{ path: '', message: `must not hold more than ${maxValues} values` }]);
    case 'too_deep':
      throw invalid([{ path: '', message: `must not nest deeper than ${maxDepth} levels` }]);
    case 'repeated_name':
    case 'not_json':
      if (body.length <= maxExplainedBytes) parseText(body);
      throw notJson('');
    case 'json':
      return JSON.parse(takeText(body));
  }
}
