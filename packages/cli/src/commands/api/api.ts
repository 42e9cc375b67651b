import { Readable } from 'node:stream';
import { ApiError } from '@runyard/client';
import { Problem } from '@runyard/contract/wire/errors';
import { apiPrefix } from '@runyard/contract/wire/route';
import type { Command } from 'commander';
import { apiKey, type Context, processContext, requireApiKey, requireOrigin } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { readInput } from '../../input/input-file.ts';
import { collect } from '../../input/options.ts';
import { describeProblem } from '../../service/connect.ts';
import { requireSameSettings } from '../../service/same-settings.ts';
import { addressSettings } from '../../supervise/running-settings.ts';
import { harmless, harmlessJson, harmlessLine } from '../../terminal/harmless.ts';

interface ApiOptions {
  /** Body: text, `-` for standard input, or `@FILE`. */
  readonly data?: string;
  /** `Name: value`. */
  readonly header?: readonly string[];
  /** Prints status and headers first. */
  readonly include?: true;
}

/**
 * Sends one request with the key to the API, and prints the body of the answer. A stream is printed while it arrives.
 * @throws Failure for an answer with status 400 or above, after its body is printed
 */
async function callApi(context: Context, method: string, path: string, options: ApiOptions): Promise<void> {
  const verb = methodOf(method);
  requireSameSettings(context, addressSettings);
  const origin = requireOrigin(context);
  const key = context.settings.RUNYARD_BASE_URL === undefined ? requireApiKey(context) : apiKey(context);
  const body = options.data === undefined ? undefined : readBody(options.data);
  const headers = new Headers({ 'user-agent': 'runyard-cli' });
  if (key !== null) headers.set('authorization', `Bearer ${key}`);
  const team = context.settings.RUNYARD_TEAM;
  if (team !== undefined && !headers.has('x-team-uid')) headers.set('x-team-uid', team);
  if (body !== undefined) headers.set('content-type', 'application/json');
  for (const pair of options.header ?? []) setHeader(headers, pair);
  const response = await send(urlOf(origin, path), {
    method: verb,
    redirect: 'manual',
    headers,
    ...(body === undefined ? {} : { body }),
  });
  if (options.include) context.out(head(response));
  const location = response.status >= 300 && response.status < 400 ? response.headers.get('location') : null;
  if (location !== null) context.out(`${harmlessLine(location, 8_192)}\n`);
  const text = await print(context, response);
  if (response.status < 400) return;
  const problem = Problem.safeParse(tryJson(text));
  throw new Failure(
    `${response.status} ${problem.success ? describeProblem(new ApiError(problem.data)) : response.statusText}`,
  );
}

/** Methods of the routes of the API. */
const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Returns the method in capital letters. @throws Failure if the word is not a method */
export function methodOf(word: string): string {
  const method = word.toUpperCase();
  if (methods.includes(method)) return method;
  const order = word.startsWith('/') ? ' before the path' : '';
  throw new Failure(
    `${JSON.stringify(harmlessLine(word))} is not a method; give one of ${methods.join(', ')}${order}, as in: bin/runyard api GET /agent/runs`,
    2,
  );
}

/**
 * Returns the URL of a path, which may be given with or without `/api/v1`. Rejects a path that leads to another server, so that the key is
 * sent only to the service.
 */
export function urlOf(origin: string, path: string): URL {
  const rooted = path.startsWith('/') ? path : `/${path}`;
  const isWhole = /^\/(api|blobs|healthz|readyz|docs)(\/|\?|$)/.test(rooted);
  const url = URL.parse(`${origin}${isWhole ? '' : apiPrefix}${rooted}`);
  if (url === null || url.origin !== new URL(origin).origin)
    throw new Failure(`${JSON.stringify(path)} is not a path of the API, such as /agent/runs`, 2);
  return url;
}

function readBody(data: string): string | Buffer {
  if (data === '-') return readInput('-');
  return data.startsWith('@') ? readInput(data.slice(1)) : data;
}

export function setHeader(headers: Headers, pair: string): void {
  const colon = pair.indexOf(':');
  try {
    if (colon === -1) throw new TypeError('there is no colon');
    headers.set(pair.slice(0, colon).trim(), pair.slice(colon + 1).trim());
  } catch {
    throw new Failure(`--header takes 'Name: value', not ${JSON.stringify(harmlessLine(pair))}`, 2);
  }
}

async function send(url: URL, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Failure(`${url.origin} does not answer: ${reason}. See: bin/runyard status`);
  }
}

function head(response: Response): string {
  const lines = [`HTTP ${response.status} ${response.statusText}`.trimEnd()];
  for (const [name, value] of response.headers) lines.push(`${name}: ${value}`);
  return `${harmless(lines.join('\n'))}\n\n`;
}

/** Prints the body of the answer. Indents a JSON body if the output is a terminal. Returns the text if the body is JSON. */
async function print(context: Context, response: Response): Promise<string> {
  if (/[/+]json\b/.test(response.headers.get('content-type') ?? '')) {
    const text = await response.text();
    const value = tryJson(text);
    const output = value !== undefined && process.stdout.isTTY ? harmlessJson(value, 2) : text;
    await context.outBytes(Readable.from([Buffer.from(output.endsWith('\n') ? output : `${output}\n`)]));
    return text;
  }
  if (response.body !== null) await context.outBytes(response.body);
  return '';
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Declares the command `api`. */
export function declareApi(command: Command): void {
  command
    .argument('<method>', 'GET, POST, …')
    .argument('<path>', 'such as /agent/runs, with or without /api/v1')
    .option('--data <json>', 'body; - for standard input, @FILE for a file')
    .option('-H, --header <header>', "a header, 'Name: value'; repeat for more", collect)
    .option('-i, --include', 'print status and headers first')
    .action((method, path, options) => callApi(processContext(), method, path, options));
}
