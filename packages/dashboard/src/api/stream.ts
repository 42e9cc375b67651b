/** Live events. One tab of the browser keeps the stream of the team and passes its events to the other tabs. */

import { EventsGoneError } from '@runyard/client';
import { follow, type Open } from '@runyard/client/follow';
import { readRoute } from '@runyard/client/routes/client-route';
import { clientRoutes } from '@runyard/client/routes/table';
import type { TeamDeliveryEvent } from '@runyard/contract/automations/team-lists';
import type { LiveEvent, TeamLiveEvent } from '@runyard/contract/runs/live-events';
import { isTerminal } from '@runyard/contract/runs/run-states';
import { apiPrefix } from '@runyard/contract/wire/route';
import { useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { type Session, useSession } from './session.ts';

/**
 * The state of the stream. With `waiting`, the stream has been broken since the time `since`, and the next try is at the time `until`.
 * Times are in milliseconds.
 */
export type StreamStatus =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'live' }
  | { readonly kind: 'waiting'; readonly until: number; readonly since: number };

/** Returns a function that opens an event stream of the API. The browser sends the cookie of the session. */
const opens =
  (session: Pick<Session, 'team'>, path: string): Open =>
  async (headers, signal) => {
    const response = await fetch(apiPrefix + path, { headers: { ...headers, 'x-team-uid': session.team.uid }, signal });
    if (response.ok) return response;
    const { errorOf, readError } = await import('@runyard/client/api-error');
    throw errorOf(await readError(response));
  };

/**
 * Returns the event if this page knows the kind of the event, and otherwise undefined. Does not check the other members, because the
 * service has checked them.
 */
const known =
  <E extends { readonly type: string }>(types: readonly E['type'][]) =>
  (data: unknown): E | undefined =>
    types.includes((data as E | null)?.type as E['type']) ? (data as E) : undefined;

/** Yields the events of a run after `lastEventId`, until the run has ended or the signal aborts. Reports the state of the stream. */
export function followRun(
  session: Session,
  runId: string,
  options: {
    readonly lastEventId?: string;
    readonly signal: AbortSignal;
    readonly onStatus: (status: StreamStatus) => void;
  },
): AsyncGenerator<{ readonly id: string; readonly event: LiveEvent }> {
  const path = readRoute(clientRoutes.streamRunEvents).path.replace('{runId}', encodeURIComponent(runId));
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

type Message<E> =
  | { readonly kind: 'event'; readonly id: string; readonly event: E }
  | { readonly kind: 'status'; readonly status: StreamStatus }
  | { readonly kind: 'gone' }
  /** A tab that has just opened sends this message to ask the tab with the connection for the state of the stream. */
  | { readonly kind: 'hello' };

/** Time to wait after the service has refused the stream, in milliseconds. */
const refusedMs = 30_000;

/** The stream of the team's events, as one tab sees it. */
export interface TeamStream<E = TeamLiveEvent> {
  /** Calls `onEvent` for each event. Calls `onGone` if this tab has missed events, so that the caller reads its data again. */
  listen(onEvent: (event: E) => void, onGone: () => void): () => void;
  readonly subscribeStatus: (listener: () => void) => () => void;
  readonly status: () => StreamStatus;
  close(): void;
}

/** A stream of the API that the tabs of a browser share. */
interface SharedStream<E extends { readonly type: string }> {
  readonly name: string;
  readonly path: string;
  readonly types: readonly E['type'][];
}

const ofRuns: SharedStream<TeamLiveEvent> = {
  name: 'events',
  path: readRoute(clientRoutes.streamTeamEvents).path,
  types: ['state', 'timeline'],
};
const ofDeliveries: SharedStream<TeamDeliveryEvent> = {
  name: 'deliveries',
  path: readRoute(clientRoutes.streamTeamDeliveries).path,
  types: ['delivery'],
};

/** Opens the stream of the runs of the team. */
export const openTeamStream = (session: Pick<Session, 'team'>): TeamStream => openStream(session, ofRuns);

/**
 * Opens a stream of the team. Only one visible tab has a connection, and this tab holds a lock of the browser. All other tabs share
 * this connection, because a browser opens at most six connections to a service over HTTP/1.1.
 */
function openStream<E extends { readonly type: string }>(
  session: Pick<Session, 'team'>,
  { name: kind, path, types }: SharedStream<E>,
): TeamStream<E> {
  const name = `runyard.${kind}.${session.team.uid}`;
  const channel = new BroadcastChannel(name);
  const listeners = new Set<{ onEvent: (event: E) => void; onGone: () => void }>();
  const statusListeners = new Set<() => void>();
  let status: StreamStatus = { kind: 'connecting' };
  let lastEventId: string | undefined;
  let turn: AbortController | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let isConnected = false;

  const take = (message: Message<E>): void => {
    if (message.kind === 'event') {
      lastEventId = message.id;
      for (const { onEvent } of listeners) onEvent(message.event);
    } else if (message.kind === 'hello') {
      if (isConnected) channel.postMessage({ kind: 'status', status } satisfies Message<E>);
    } else if (message.kind === 'gone') {
      lastEventId = undefined;
      for (const { onGone } of listeners) onGone();
    } else {
      status = message.status;
      for (const listener of statusListeners) listener();
    }
  };
  const tell = (message: Message<E>): void => {
    take(message);
    channel.postMessage(message);
  };
  channel.onmessage = ({ data }: MessageEvent<Message<E>>) => take(data);

  const followTeam = async (signal: AbortSignal): Promise<void> => {
    let since = 0;
    while (!signal.aborted) {
      const options = { signal, ...(lastEventId === undefined ? {} : { lastEventId }) };
      const events = follow(opens(session, path), options, {
        parse: known<E>(types),
        endsWith: () => undefined,
        onOpen: () => {
          since = 0;
          // If no id of a last event is known, the page may have missed events since it read its lists.
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
        // The service has refused the stream, for example because there are too many streams. If the reason is that the session has
        // ended, the next request of the page redirects to the sign-in.
        tell({ kind: 'status', status: { kind: 'waiting', until: Date.now() + refusedMs, since: Date.now() } });
        retry = setTimeout(follows, refusedMs);
      });
  };
  document.addEventListener('visibilitychange', follows);
  follows();
  channel.postMessage({ kind: 'hello' } satisfies Message<E>);

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

/** Returns the state of the team's stream. */
export function useTeamStreamStatus(): StreamStatus {
  const { events } = useSession();
  return useSyncExternalStore(events.subscribeStatus, events.status);
}

/** Calls `onDelivery` for each new delivery or outcome of the team while the component is mounted, and `onGone` when events were missed. */
export function useDeliveries(
  onDelivery: (delivery: TeamDeliveryEvent['delivery']) => void,
  onGone: () => void,
): StreamStatus {
  const session = useSession();
  const [status, setStatus] = useState<StreamStatus>({ kind: 'connecting' });
  const handlers = useRef({ onDelivery, onGone });
  useEffect(() => {
    handlers.current = { onDelivery, onGone };
  });
  useEffect(() => {
    const stream = openStream({ team: session.team }, ofDeliveries);
    const stops = [
      stream.listen(
        ({ delivery }) => handlers.current.onDelivery(delivery),
        () => handlers.current.onGone(),
      ),
      stream.subscribeStatus(() => setStatus(stream.status())),
    ];
    return () => {
      for (const stop of stops) stop();
      stream.close();
    };
  }, [session.team]);
  return status;
}
