import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Returns true if the request has this run token. Returns false if the token is empty, because the agent has not started yet. */
export function hasRunToken(request: IncomingMessage, token: string): boolean {
  const given = Buffer.from(request.headers.authorization ?? '');
  const wanted = Buffer.from(`Bearer ${token}`);
  return token !== '' && given.length === wanted.length && timingSafeEqual(given, wanted);
}
