/** One timer for all streams of the process. */
import { cut, type Stream } from './feed.ts';

/** Proxies close connections that are silent for a minute, so each stream gets a heartbeat in this interval. */
const heartbeatSeconds = 15;
/** A reader that reads nothing for this time is disconnected. It can connect again and continue. */
const defaultStuckMs = 60_000;

/** A stream of a run or of a team. */
type AnyStream = Stream<unknown>;

export interface Pulse {
  add(stream: AnyStream): void;
  remove(stream: AnyStream): void;
  /** Visits the streams of one beat: a fifteenth of all streams. */
  beat(): void;
}

/** Visits every stream once in 15 beats, so that 5,000 streams never cause a burst of writes. */
export function makePulse(options: { readonly stuckMs?: number } = {}): Pulse {
  const stuckMs = options.stuckMs ?? defaultStuckMs;
  const turns = Array.from({ length: heartbeatSeconds }, () => new Set<AnyStream>());
  let next = 0;
  let now = 0;

  const visit = (stream: AnyStream) => {
    const { outlet, feed } = stream;
    if (stream.fullSince !== null) {
      if (performance.now() - stream.fullSince > stuckMs) cut(stream);
      return;
    }
    if (!stream.isLively && !outlet.write(feed.source.heartbeat(stream.position))) stream.fullSince = performance.now();
    stream.isLively = false;
  };

  return {
    add: (stream) => {
      turns[next]?.add(stream);
      next = (next + 1) % turns.length;
    },
    remove: (stream) => {
      for (const turn of turns) if (turn.delete(stream)) return;
    },
    beat: () => {
      for (const stream of turns[now] ?? []) visit(stream);
      now = (now + 1) % turns.length;
    },
  };
}
