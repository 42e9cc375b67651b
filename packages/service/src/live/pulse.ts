/** One timer for all streams of the process. */
import type { Database, Statement } from '../store/database/database.ts';
import { cut, type Stream } from './feed.ts';

/** Proxies close connections that are silent for a minute. */
const heartbeatSeconds = 15;
/** A reader that takes nothing for so long is disconnected; it comes back where it was. */
const defaultStuckMs = 60_000;

/** A stream of either kind. */
type AnyStream = Stream<unknown>;

export interface Pulse {
  add(stream: AnyStream): void;
  remove(stream: AnyStream): void;
  /** One second's share of the streams. */
  beat(): void;
  /** Cuts the streams whose keys are not valid any more. */
  checkKeys(): Promise<void>;
}

const readValidKeys: Statement = {
  name: 'read_valid_keys_of_streams',
  text: `
    SELECT k.id FROM api_keys k LEFT JOIN team_members m ON m.team_id = k.team_id AND m.user_id = k.user_id
    WHERE k.id = ANY($1::uuid[]) AND (k.expires_at IS NULL OR k.expires_at > now()) AND (k.kind = 'agent' OR m.role IS NOT NULL)`,
};

/** Every stream has its turn once in 15 beats, so that there is never a burst of 5,000 writes. */
export function makePulse(db: Database, options: { readonly stuckMs?: number } = {}): Pulse {
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
    checkKeys: async () => {
      const streams = turns.flatMap((turn) => [...turn]);
      if (streams.length === 0) return;
      const rows = await db.query<{ id: string }>(readValidKeys, [[...new Set(streams.map(({ keyId }) => keyId))]]);
      const valid = new Set(rows.map(({ id }) => id));
      for (const stream of streams) if (!valid.has(stream.keyId)) cut(stream);
    },
  };
}
