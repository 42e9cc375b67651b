/** Sends the messages about several sandboxes over one connection between a worker and a supervisor. */
import type { LineHandlers, Lines } from './lines.ts';

/** A message with the id of its sandbox. */
export interface Addressed<Message> {
  readonly sandbox: string;
  readonly message: Message;
}

/** Sends and receives the messages about one sandbox. `close` removes the channel, but does not close the connection. */
export type Channel<Out, In> = Pick<Lines<Out, In>, 'send' | 'close' | 'handle'>;

export interface ChannelHandlers<In> {
  /** Called with each message about a sandbox that has no channel. */
  message(sandbox: string, message: In): void;
  /** Called once, when the connection is closed and all channels were notified. */
  closed(): void;
}

/** Divides a connection into channels. Returns a function that opens the channel of a sandbox. */
export function shareLines<Out, In>(
  lines: Pick<Lines<Addressed<Out>, Addressed<In>>, 'send' | 'handle'>,
  rest: ChannelHandlers<In>,
): (sandbox: string) => Channel<Out, In> {
  const channels = new Map<string, LineHandlers<In>>();
  let isClosed = false;
  lines.handle({
    message({ sandbox, message }) {
      const handlers = channels.get(sandbox);
      if (handlers === undefined) rest.message(sandbox, message);
      else handlers.message(message);
    },
    closed() {
      isClosed = true;
      for (const handlers of [...channels.values()]) handlers.closed();
      channels.clear();
      rest.closed();
    },
  });
  return (sandbox) => ({
    send: (message) => lines.send({ sandbox, message }),
    close(then) {
      channels.delete(sandbox);
      then?.();
    },
    handle(handlers) {
      if (isClosed) handlers.closed();
      else channels.set(sandbox, handlers);
    },
  });
}
