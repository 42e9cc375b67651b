/** Creates runs over HTTP with callers that never pause. */
import http from 'node:http';
import { percentile } from './report.ts';

/** The result of one round: creates per second, and milliseconds of a call. */
export interface Round {
  readonly perSecond: number;
  /** Number of creates. */
  readonly creates: number;
  readonly p50: number;
  readonly p99: number;
}

/** Body of each create. */
export const createBody = JSON.stringify({
  prompt: `Look at the failing build.\n${'It fails in the linker. '.repeat(10)}`,
  title: 'Build',
});

/** Sends requests from several callers at the same time. Each caller sends a request as soon as its last request was answered. */
export async function loadWithCreates(
  url: string,
  headers: Readonly<Record<string, string>>,
  { callers, seconds }: { readonly callers: number; readonly seconds: number },
): Promise<Round> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: callers });
  const latencies: number[] = [];
  const started = performance.now();
  const end = started + seconds * 1000;
  const post = () =>
    new Promise<void>((resolve, reject) => {
      const at = performance.now();
      const request = http.request(
        url,
        {
          agent,
          method: 'POST',
          headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(createBody), ...headers },
        },
        (response) => {
          if (response.statusCode !== 200) reject(new Error(`answered ${response.statusCode}`));
          response.resume().once('end', () => {
            latencies.push(performance.now() - at);
            resolve();
          });
        },
      );
      request.once('error', reject);
      request.end(createBody);
    });
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (performance.now() < end) await post();
    }),
  );
  const took = (performance.now() - started) / 1000;
  agent.destroy();
  return {
    creates: latencies.length,
    perSecond: latencies.length / took,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
  };
}
