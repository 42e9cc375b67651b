/** Describes why the service refused a connection. */
import type { IncomingMessage } from 'node:http';
import { z } from 'zod';

/** Time for the body of a refusal. */
const detailMs = 2_000;
/** Characters. */
const longestDetail = 2_000;
const Problem = z.object({ detail: z.string() });

/** Returns the sentence for the console. `detail`: the text of the service. */
export function refusal(status: number, keySource: string, workerName: string, detail: string): string {
  return status === 401
    ? `the service does not know the key (401): ${keySource} is wrong, expired or revoked; give the worker a valid key in RUNYARD_API_KEY`
    : `the service refuses the name ${workerName} with the key of ${keySource} (403): ${detail || 'without a reason'}; or set RUNYARD_WORKER_NAME to another name`;
}

/** Statuses of proxies that do not forward a WebSocket, and of the service for a request whose Upgrade header was removed. */
const ofProxies: ReadonlySet<number> = new Set([400, 404, 405, 426]);

/**
 * Returns the rest of the sentence about a WebSocket that was answered with a status. `detail`: the text of the service; '' if there is no
 * text.
 */
export function withoutWebSocket(status: number, detail: string): string {
  const said = detail === '' ? '' : `: ${detail}`;
  // The detail of the service names the settings of proxies itself.
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
