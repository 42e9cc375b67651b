/**
 * Reads an event stream and closes its own connection at random moments. Then it connects again and continues after the last id that
 * it has received.
 */
import { type ClientRequest, get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

export interface CutOffReader {
  /** Ids of the events in the order in which they came. */
  readonly ids: string[];
  /** Data of the events, as text. */
  readonly events: string[];
  /** Returns the last id that the reader has received, or '' if it has received none. */
  lastId(): string;
  /** Returns the number of connections that were opened so far. */
  connections(): number;
  /** Resolves when the stream has reported its end, or after `stop`. */
  readonly done: Promise<void>;
  stop(): void;
}

export interface CutOffOptions {
  readonly url: () => string;
  readonly key: string;
  /** Returns the lifetime of the next connection in milliseconds. */
  readonly lifeMs: () => number;
}

/** Starts to read. `done` rejects if the service refuses a connection with a status other than 5xx. */
export function readCutOff({ url, key, lifeMs }: CutOffOptions): CutOffReader {
  const ids: string[] = [];
  const events: string[] = [];
  let lastId = '';
  let connections = 0;
  let hasEnded = false;
  let request: ClientRequest | undefined;

  const take = (frame: string) => {
    lastId = /^id: (.*)$/m.exec(frame)?.[1] ?? lastId;
    if (/^: end$/m.test(frame)) hasEnded = true;
    const data = /^data: (.*)$/m.exec(frame)?.[1];
    if (data === undefined) return;
    ids.push(lastId);
    events.push(data);
  };

  const once = () =>
    new Promise<void>((resolve, reject) => {
      connections += 1;
      const headers = { authorization: `Bearer ${key}`, ...(lastId ? { 'last-event-id': lastId } : {}) };
      const asked = get(url(), { headers, agent: false }, (response) => {
        if (response.statusCode !== 200) {
          response.resume();
          if ((response.statusCode ?? 500) < 500) reject(new Error(`answered ${response.statusCode} to ${lastId}`));
          return;
        }
        let rest = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          const frames = (rest + chunk).split('\n\n');
          rest = frames.pop() ?? '';
          for (const frame of frames) take(frame);
        });
        response.on('error', () => undefined);
      });
      request = asked;
      asked.on('error', () => undefined);
      const timer = setTimeout(() => asked.destroy(), lifeMs());
      asked.on('close', () => {
        clearTimeout(timer);
        resolve();
      });
    });

  const done = (async () => {
    while (!hasEnded) {
      await once();
      await delay(5);
    }
  })();
  done.catch(() => undefined);
  return {
    ids,
    events,
    lastId: () => lastId,
    connections: () => connections,
    done,
    stop: () => {
      hasEnded = true;
      request?.destroy();
    },
  };
}
