/** Test support: a reader of server-sent events. */
import type { TeamDeliveryEvent } from '@runyard/contract/automations/team-lists';
import type { LiveEvent, TeamLiveEvent } from '@runyard/contract/runs/live-events';
import { expect, vi } from 'vitest';
import type { TestService } from './service.ts';

/** An event, and the id after which a reader continues. */
interface Received {
  readonly id: string;
  readonly event: LiveEvent | TeamLiveEvent | TeamDeliveryEvent;
}

/** A stream that is being read. */
export interface StreamReader {
  readonly received: Received[];
  /** The last id, also of frames without an event. */
  lastId(): string;
  /** Resolves when the stream ends. */
  readonly ended: Promise<void>;
  close(): void;
}

/** Opens a stream and reads it to its end or until it is closed; `path` is below `/api/v1`. */
export async function followStream(
  service: TestService,
  path: string,
  lastId?: string,
  key = service.key,
): Promise<StreamReader> {
  const controller = new AbortController();
  const response = await fetch(`${service.baseUrl}/api/v1${path}`, {
    headers: { authorization: `Bearer ${key}`, ...(lastId === undefined ? {} : { 'last-event-id': lastId }) },
    signal: controller.signal,
  });
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  const received: Received[] = [];
  let last = lastId ?? '';
  const read = async () => {
    let rest = '';
    for await (const chunk of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
      const frames = (rest + chunk).split('\n\n');
      rest = frames.pop() ?? '';
      for (const frame of frames) {
        last = /^id: (.*)$/m.exec(frame)?.[1] ?? last;
        const data = /^data: (.*)$/m.exec(frame)?.[1];
        if (data) received.push({ id: last, event: JSON.parse(data) });
      }
    }
  };
  return { received, lastId: () => last, ended: read().catch(() => undefined), close: () => controller.abort() };
}

/** Returns the states that the reader received, in order. */
export const stateNames = ({ received }: StreamReader): string[] =>
  received.flatMap(({ event }) => (event.type === 'state' ? [event.state] : []));

/** Waits until the reader receives a state. */
export const untilState = (reader: StreamReader, state: string): Promise<void> =>
  vi.waitFor(() => expect(stateNames(reader)).toContain(state), { timeout: 60_000 });
