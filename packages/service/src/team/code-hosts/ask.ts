import type { IncomingHttpHeaders } from 'node:http';
import https from 'node:https';
import { systemNames } from '@runyard/system/names/resolver';
import { http } from '@runyard/system/node-http';
import { agentFor } from '@runyard/system/outgoing/outgoing';

/** A small request to the git service or the API of a code host. */
export interface HostQuestion {
  readonly url: URL;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** Aborts the request, even while the answer is being read. */
  readonly signal: AbortSignal;
  /** Maximum number of bytes of the body that are read; the rest is ignored. */
  readonly maxBytes: number;
}

export interface HostAnswer {
  readonly status: number;
  readonly location: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  /** True if the body had more than `maxBytes` bytes. */
  readonly isCut: boolean;
}

/** Asks the code host. Redirects are not followed. Rejects if the host cannot be reached or the signal aborts. */
export function askCodeHost({ url, method, headers, body, signal, maxBytes }: HostQuestion): Promise<HostAnswer> {
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? https : http).request(url, {
      method,
      headers: { 'user-agent': 'runyard', 'accept-encoding': 'identity', ...headers },
      agent: agentFor(url),
      lookup: systemNames.lookup,
      signal,
    });
    request.on('error', reject);
    request.once('response', (response) => {
      const parts: Buffer[] = [];
      let size = 0;
      const answer = () => {
        const { headers } = response;
        const bytes = Buffer.concat(parts).subarray(0, maxBytes);
        const status = response.statusCode ?? 502;
        resolve({ status, location: headers.location, headers, bytes, isCut: size > maxBytes });
        response.destroy();
      };
      if (maxBytes === 0) return answer();
      response.on('data', (part: Buffer) => {
        parts.push(part);
        size += part.byteLength;
        if (size > maxBytes) answer();
      });
      response.once('error', reject);
      response.once('end', answer);
    });
    request.end(body);
  });
}
