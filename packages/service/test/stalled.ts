/** Test support: requests of agents that stop in the middle, after the service has authenticated them. */
import { request } from 'node:http';
import { apiPrefix } from '@runyard/contract/wire/route';
import { expect, vi } from 'vitest';
import type { TestService } from './service.ts';

export interface StalledRequests {
  /**
   * Sends a request without the last byte of its body. Resolves when the service has authenticated the request. `goOn` sends the last
   * byte and returns the answer.
   */
  stall(
    method: string,
    path: string,
    token: string,
    body: string,
    type?: string,
  ): Promise<{ goOn(): Promise<{ status: number; text: string }> }>;
  /** Sends a request that the service does not answer at once. Resolves when the service has authenticated the request. */
  authenticated<T>(send: () => Promise<T>): Promise<{ readonly answer: Promise<T> }>;
}

/** Makes these functions for a service. Watches the queries of the service: a query for the run token shows that a request is authenticated. */
export function stalledRequests(service: TestService): StalledRequests {
  const { db } = service.deps;
  const { query } = db;
  let lookUps = 0;
  Object.assign(db, {
    query: async (...given: Parameters<typeof query>): Promise<object[]> => {
      const rows = await query(...given);
      if (typeof given[0] === 'object' && given[0].name === 'read_run_session') lookUps += 1;
      return rows;
    },
  });
  const untilLookedUp = (before: number) =>
    vi.waitFor(() => expect(lookUps).toBeGreaterThan(before), { timeout: 60_000 });

  return {
    stall: async (method, path, token, body, type = 'application/json') => {
      const before = lookUps;
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': type,
        'content-length': Buffer.byteLength(body),
      };
      const asked = request(service.baseUrl + apiPrefix + path, { method, agent: false, headers });
      const answered = new Promise<{ status: number; text: string }>((resolve, reject) => {
        asked.on('error', reject);
        asked.on('response', async (answer) => {
          let text = '';
          for await (const piece of answer) text += piece;
          resolve({ status: answer.statusCode ?? 0, text });
        });
      });
      asked.write(body.slice(0, -1));
      await untilLookedUp(before);
      return {
        goOn: async () => {
          asked.end(body.slice(-1));
          return await answered;
        },
      };
    },
    authenticated: async (send) => {
      const before = lookUps;
      const answer = send();
      await untilLookedUp(before);
      return { answer };
    },
  };
}
