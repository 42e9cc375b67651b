/** Test support: a reader of server-sent events. */
import type { TeamDeliveryEvent } from '@runyard/contract/automations/team-lists';
import type { LiveEvent, TeamLiveEvent } from '@runyard/contract/runs/live-events';
import { expect, vi } from 'vitest';
import type { TestService } from './service.ts';

/** An event of a stream. `id`: a reader that connects again with this id gets the next events. */
interface Received {
  readonly id: string;
  readonly event: LiveEvent | TeamLiveEvent | TeamDeliveryEvent;
}

/** A stream that is being read. */
export interface StreamReader {
  readonly received: Received[];
  /** Returns the last id that was received. Messages without an event also have an id. */
  lastId(): string;
  /** Resolves when the stream ends. */
  readonly ended: Promise<void>;
  close(): void;
}

/** Opens a stream, and reads it in the background until it ends or `close` is called. `path` is relative to `/api/v1`. */
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

/** Returns the states of runs that the reader has received, in their order. */
export const stateNames = ({ received }: StreamReader): string[] =>
  received.flatMap(({ event }) => (event.type === 'state' ? [event.state] : []));

/** Waits until the reader has received this state of a run. */
export const untilState = (reader: StreamReader, state: string): Promise<void> =>
  vi.waitFor(() => expect(stateNames(reader)).toContain(state), { timeout: 60_000 });
