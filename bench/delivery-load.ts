/** Sends signed deliveries over HTTP, either at a fixed rate or with senders that never pause. */
import { createHmac, randomUUID } from 'node:crypto';
import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { percentile } from './report.ts';

/** The result of one round. `p50` and `p99`: milliseconds of a delivery. `refused`: number of deliveries with another status than 202. */
export interface DeliveryRound {
  readonly count: number;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly refused: number;
}

export interface DeliveryLoad {
  readonly urls: readonly string[];
  readonly secret: string;
  readonly callers: number;
  readonly seconds: number;
  /** Deliveries per second. Absent: as many as possible. */
  readonly perSecond?: number;
  /** True: all deliveries of a webhook have the same id and body. */
  readonly isRepeated?: true;
}

const padding = 'It fails in the linker. '.repeat(40);

/** Sends deliveries for `seconds` seconds. Each delivery goes to the next webhook of the list. */
export async function loadWithDeliveries(load: DeliveryLoad): Promise<DeliveryRound> {
  const { urls, secret, callers, seconds, perSecond, isRepeated } = load;
  const agent = new http.Agent({ keepAlive: true, maxSockets: callers });
  const latencies: number[] = [];
  let refused = 0;
  let sent = 0;
  const started = performance.now();
  const post = () =>
    new Promise<void>((resolve, reject) => {
      const body = JSON.stringify({ action: 'failed', id: isRepeated ? 'same' : randomUUID(), padding });
      const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
      const headers = { 'content-length': Buffer.byteLength(body), 'x-hub-signature-256': signature };
      const url = urls[sent % urls.length] ?? '';
      sent += 1;
      const at = performance.now();
      const request = http.request(url, { agent, method: 'POST', headers }, (response) => {
        if (response.statusCode !== 202) refused += 1;
        response.resume().once('end', () => {
          latencies.push(performance.now() - at);
          resolve();
        });
      });
      request.once('error', reject);
      request.end(body);
    });
  const end = started + seconds * 1000;
  const waitMs = perSecond === undefined ? 0 : (1000 * callers) / perSecond;
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      await delay((waitMs * caller) / callers);
      for (let next = performance.now(); performance.now() < end; next += waitMs) {
        await delay(Math.max(0, next - performance.now()));
        await post();
      }
    }),
  );
  const took = (performance.now() - started) / 1000;
  agent.destroy();
  return {
    count: latencies.length,
    perSecond: latencies.length / took,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    refused,
  };
}
