import type { IncomingMessage } from 'node:http';
import { http } from '@runyard/system/node-http';
import { readText } from './silence.ts';

export interface PlainRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/**
 * Sends a request without fetch, whose first call loads undici (`docs/decisions/starts.md`). Returns status, body, `Retry-After` and `Date` of
 * the answer, and calls `heard` for each chunk. Does not follow redirects. Throws if the answer is incomplete, or when the signal is aborted.
 * If the body of an error answer is cut, returns an empty body.
 */
export async function sendPlain(
  url: string,
  request: PlainRequest,
  heard: () => void,
): Promise<{ status: number; text: string; retryAfter: string | undefined; date: string | undefined }> {
  const answer = await answerOf(url, request);
  const status = answer.statusCode ?? 0;
  const text = await readText(answer, heard).catch((error: unknown) => {
    if (status >= 400) return '';
    throw error;
  });
  const { date, 'retry-after': retryAfter } = answer.headers;
  return { status, text, retryAfter, date };
}

function answerOf(url: string, { method, headers, body, signal }: PlainRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
    const client = url.startsWith('https:') ? process.getBuiltinModule('node:https') : http;
    const request = client.request(url, { method, headers: { ...headers, ...length }, signal });
    // This listener stays after the answer has begun, because Node reports a connection that breaks later as an error of the request too.
    request.once('response', resolve).on('error', reject);
    request.end(body);
  });
}
