import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { type ClientAttempt, noteClosed, noteSent } from '../../../platform/idempotency/client-answers.ts';
import type { ServiceDeps } from './deps.ts';

/** Records in the database whether a published client received the answer to its request. */
export type WatchDelivery = (reply: FastifyReply, attempt: ClientAttempt) => void;

/** A client that has read its answer keeps the connection open for longer than this time, except when its program ends. */
const rightAfterMs = 1_000;

/**
 * Returns the function that watches an answer. If the connection closes before the answer is written, the answer stays recorded as not
 * sent. A written answer may still be lost: in this case the other side closes the connection at once. A further request on the connection
 * shows that the client read the answer.
 */
export function watchDeliveries(app: FastifyInstance, { db, log }: Pick<ServiceDeps, 'db' | 'log'>): WatchDelivery {
  const unwatch = new WeakMap<Socket, () => void>();
  app.addHook('onRequest', async ({ raw }) => unwatch.get(raw.socket)?.());

  const watchConnection = (socket: Socket, onClosed: () => void) => {
    const onEnd = () => {
      stop();
      onClosed();
    };
    // Without an error, this service closed the connection itself, so nothing is recorded.
    const onClose = (hadError: boolean) => {
      if (hadError) onEnd();
      else stop();
    };
    const timer = setTimeout(() => stop(), rightAfterMs).unref();
    const stop = () => {
      clearTimeout(timer);
      socket.off('end', onEnd).off('close', onClose);
      unwatch.delete(socket);
    };
    socket.once('end', onEnd).once('close', onClose);
    unwatch.set(socket, stop);
  };

  return (reply, attempt) => {
    const { raw } = reply;
    const { socket } = reply.request.raw;
    raw.once('close', () => {
      const { id } = attempt.answer;
      if (id === null || !raw.writableFinished) return;
      const onFailed = (err: unknown) =>
        log.warn({ err }, 'could not record that an answer was sent; a repeated request may get this answer');
      const sent = noteSent(db, id).catch(onFailed);
      const onClosed = () => void sent.then(() => noteClosed(db, id)).catch(onFailed);
      // If the client asked to close the connection after the answer, the close does not show whether the answer arrived.
      if (!raw.shouldKeepAlive) return;
      if (socket.readableEnded) onClosed();
      else if (!socket.destroyed) watchConnection(socket, onClosed);
    });
  };
}
