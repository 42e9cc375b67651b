/** Live events. One tab of the browser keeps the stream of the team and passes its events to the others. */

import { EventsGoneError } from '@runyard/client';
import { follow, type Open } from '@runyard/client/follow';
import { clientRoutes } from '@runyard/client/routes/table';
import type { LiveEvent, TeamLiveEvent } from '@runyard/contract/runs/live-events';
import { isTerminal } from '@runyard/contract/runs/run-states';
import { apiPrefix } from '@runyard/contract/wire/route';
import { useEffect, useRef, useSyncExternalStore } from 'react';
import { type Session, useSession } from './session.ts';

/** How the stream is: live, broken with the time of the next try, or offline since a time. Times in milliseconds. */
export type StreamStatus =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  | { readonly kind: 'waiting'; readonly until: number; readonly since: number };

/** Returns a function that opens a stream of the API with the cookie of the session. */
const opens =
  (session: Pick<Session, 'team'>, path: string): Open =>
  async (headers, signal) => {
    const response = await fetch(apiPrefix + path, { headers: { ...headers, 'x-team-uid': session.team.uid }, signal });
    if (response.ok) return response;
    const { errorOf, readError } = await import('@runyard/client/api-error');
    throw errorOf(await readError(response));
  };

/** Returns an event whose kind this page knows. The service has checked the rest of the event. */
const known =
  <E extends { readonly type: string }>(types: readonly E['type'][]) =>
  (data: unknown): E | undefined =>
    types.includes((data as E | null)?.type as E['type']) ? (data as E) : undefined;

/** Follows a run from `lastEventId` on, until it has ended or the signal is aborted. Reports how the stream is. */
export function followRun(
  session: Session,
  runId: string,
  options: {
    readonly lastEventId?: string;
    readonly signal: AbortSignal;
    readonly onStatus: (status: StreamStatus) => void;
  },
): AsyncGenerator<{ readonly id: string; readonly event: LiveEvent }> {
  const path = clientRoutes.streamRunEvents.path.replace('{runId}', encodeURIComponent(runId));
  let since = 0;
  return follow(opens(session, path), options, {
    parse: known<LiveEvent>(['state', 'timeline', 'conversation']),
    endsWith: (event) => event.type === 'state' && isTerminal(event.state),
    onOpen: () => {
      since = 0;
      options.onStatus({ kind: 'live' });
    },
    onWait: (ms) => {
      since ||= Date.now();
      options.onStatus({ kind: 'waiting', until: Date.now() + ms, since });
    },
  });
}

type Message =
  | { readonly kind: 'event'; readonly id: string; readonly event: TeamLiveEvent }
  | { readonly kind: 'status'; readonly status: StreamStatus }
  | { readonly kind: 'gone' }
  /** A tab that has just opened asks the tab with the connection how the stream is. */
  | { readonly kind: 'hello' };

/** Wait after a refusal of the stream, milliseconds. */
const refusedMs = 30_000;

/** The team's events in one tab. */
export interface TeamStream {
  /** Calls `onEvent` for each event, and `onGone` if events were missed, so that the caller reads its data again. */
  listen(onEvent: (event: TeamLiveEvent) => void, onGone: () => void): () => void;
  readonly subscribeStatus: (listener: () => void) => () => void;
  readonly status: () => StreamStatus;
  close(): void;
}

/**
 * Opens the team's stream. Of all visible tabs one holds the lock of the browser, and with it the connection. Hidden tabs hold none,
 * because browsers open six connections to a service that speaks HTTP/1.1.
 */
export function openTeamStream(session: Pick<Session, 'team'>): TeamStream {
  const name = `runyard.events.${session.team.uid}`;
  const channel = new BroadcastChannel(name);
  const listeners = new Set<{ onEvent: (event: TeamLiveEvent) => void; onGone: () => void }>();
  const statusListeners = new Set<() => void>();
  let status: StreamStatus = { kind: 'connecting' };
  let lastEventId: string | undefined;
  let turn: AbortController | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let isConnected = false;

  const take = (message: Message): void => {
    if (message.kind === 'event') {
      lastEventId = message.id;
      for (const { onEvent } of listeners) onEvent(message.event);
    } else if (message.kind === 'hello') {
      if (isConnected) channel.postMessage({ kind: 'status', status } satisfies Message);
    } else if (message.kind === 'gone') {
      lastEventId = undefined;
      for (const { onGone } of listeners) onGone();
    } else {
      status = message.status;
      for (const listener of statusListeners) listener();
    }
  };
  const tell = (message: Message): void => {
    take(message);
    channel.postMessage(message);
  };
  channel.onmessage = ({ data }: MessageEvent<Message>) => take(data);

  const followTeam = async (signal: AbortSignal): Promise<void> => {
    let since = 0;
    while (!signal.aborted) {
      const options = { signal, ...(lastEventId === undefined ? {} : { lastEventId }) };
      const events = follow(opens(session, clientRoutes.streamTeamEvents.path), options, {
        parse: known<TeamLiveEvent>(['state', 'timeline']),
        endsWith: () => undefined,
        onOpen: () => {
          since = 0;
          // Without an id, events between the reads of the lists and this connection are not known.
          if (lastEventId === undefined) tell({ kind: 'gone' });
          tell({ kind: 'status', status: { kind: 'live' } });
        },
        onWait: (ms) => {
          since ||= Date.now();
          tell({ kind: 'status', status: { kind: 'waiting', until: Date.now() + ms, since } });
        },
      });
      try {
        for await (const { id, event } of events) tell({ kind: 'event', id, event });
      } catch (error) {
        if (!(error instanceof EventsGoneError)) throw error;
        tell({ kind: 'gone' });
      }
    }
  };

  const follows = (): void => {
    turn?.abort();
    clearTimeout(retry);
    if (document.hidden) return;
    turn = new AbortController();
    const { signal } = turn;
    navigator.locks
      .request(name, { signal }, async () => {
        isConnected = true;
        await followTeam(signal).finally(() => {
          isConnected = false;
        });
      })
      .catch(() => {
        if (signal.aborted) return;
        // A refusal, such as that of too many streams. If the session has ended, the next request of the page redirects to the sign-in.
        tell({ kind: 'status', status: { kind: 'waiting', until: Date.now() + refusedMs, since: Date.now() } });
        retry = setTimeout(follows, refusedMs);
      });
  };
  document.addEventListener('visibilitychange', follows);
  follows();
  channel.postMessage({ kind: 'hello' } satisfies Message);

  return {
    listen(onEvent, onGone) {
      const listener = { onEvent, onGone };
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    subscribeStatus: (listener) => {
      statusListeners.add(listener);
      return () => statusListeners.delete(listener);
    },
    status: () => status,
    close() {
      document.removeEventListener('visibilitychange', follows);
      turn?.abort();
      clearTimeout(retry);
      channel.close();
    },
  };
}

/** Calls `onEvent` for each event of the team while the component is mounted, and `onGone` when events were missed. */
export function useTeamEvents(onEvent: (event: TeamLiveEvent) => void, onGone: () => void): void {
  const { events } = useSession();
  const handlers = useRef({ onEvent, onGone });
  useEffect(() => {
    handlers.current = { onEvent, onGone };
  });
  useEffect(
    () =>
      events.listen(
        (event) => handlers.current.onEvent(event),
        () => handlers.current.onGone(),
      ),
    [events],
  );
}

/** Returns how the team's stream is. */
export function useTeamStreamStatus(): StreamStatus {
  const { events } = useSession();
  return useSyncExternalStore(events.subscribeStatus, events.status);
}
