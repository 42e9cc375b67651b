/** Describes why the service refused a connection. */
import type { IncomingMessage } from 'node:http';
import { z } from 'zod';

/** Time limit for reading the body of a refusal. */
const detailMs = 2_000;
/** Characters. */
const longestDetail = 2_000;
const Problem = z.object({ detail: z.string() });

/** Returns the console message about a refused connection. `detail`: the reason that the service sent. */
export function refusal(status: number, keySource: string, workerName: string, detail: string): string {
  return status === 401
    ? `the service does not know the key (401): ${keySource} is wrong, expired or revoked; give the worker a valid key in RUNYARD_API_KEY`
    : `the service refuses the name ${workerName} with the key of ${keySource} (403): ${detail || 'without a reason'}; or set RUNYARD_WORKER_NAME to another name`;
}

/**
 * With these statuses, a WebSocket request has failed because of a proxy. Either the proxy does not forward WebSockets, or the proxy has
 * removed the Upgrade header and the service refuses the request.
 */
const ofProxies: ReadonlySet<number> = new Set([400, 404, 405, 426]);

/**
 * Returns the end of the message about a WebSocket request that was answered with an HTTP status instead of a WebSocket. `detail`: the
 * reason that the service sent, or ''.
 */
export function withoutWebSocket(status: number, detail: string): string {
  const said = detail === '' ? '' : `: ${detail}`;
  // A detail that mentions `Upgrade` comes from the service and already names the proxy settings.
  if (!ofProxies.has(status) || detail.includes('Upgrade')) return said;
  return `${said}; a proxy in front of the service must pass WebSockets on (nginx: proxy_http_version 1.1, proxy_set_header Upgrade $http_upgrade, proxy_set_header Connection "upgrade"; docs/proxy.md)`;
}

/** Returns the detail of a refusal, on one line; '' if the answer has no detail, is too long, or does not end in time. */
export async function readDetail(response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  const late = setTimeout(() => response.destroy(), detailMs);
  try {
    for await (const part of response) {
      size += part.length;
      if (size > 4 * longestDetail) return '';
      parts.push(part);
    }
    const read = Problem.safeParse(JSON.parse(Buffer.concat(parts).toString('utf8')));
    return read.success
      ? read.data.detail
          .replace(/\p{C}+/gu, ' ')
          .trim()
          .slice(0, longestDetail)
      : '';
  } catch {
    return '';
  } finally {
    clearTimeout(late);
    response.destroy();
  }
}
