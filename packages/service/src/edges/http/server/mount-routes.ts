/** Mounts the routes that domains list as data. */
import type { Route } from '@runyard/contract/wire/route';
import type { FastifyInstance } from 'fastify';
import { closedSignal } from '../../../platform/bodies/answered-client.ts';
import { answerOnce, isClientAttempt, once, type RepeatableRequest } from '../../../platform/idempotency/once.ts';
import { Refusal } from '../../../platform/serving/refusal.ts';
import type { Redirect, ServedRoute } from '../../../platform/serving/served-route.ts';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { seal, unseal } from '../../../team/access/keys/sealed.ts';
import { addRoute, type Call } from './add-route.ts';
import { type Authorizer, originOf } from './authorize.ts';
import { waitingSignals } from './closing.ts';
import { redirect } from './download.ts';

/** Registers the routes of a domain. */
export function mountRoutes(app: FastifyInstance, db: Database, served: readonly ServedRoute[]): void {
  const waitingOf = waitingSignals(app);
  const { keyIn } = app.getDecorator<Authorizer>('authorizer');

  /** Returns what the handler of a domain gets in place of the HTTP request and reply, because domains do not know HTTP. */
  const callOf = ({ request, reply, ...call }: Call<Route>) => ({
    ...call,
    from: originOf(request),
    setHeader: (name: string, value: string) => void reply.header(name, value),
    cut: () => void reply.raw.destroy(),
    closed: () => closedSignal(reply.raw),
    waiting: () => waitingOf(request),
  });

  for (const each of served) {
    const answer = 'once' in each ? answerOf(db, each, keyIn) : each.handle;
    addRoute(app, each.route, async (call) => {
      const result = await answer(callOf(call) as never, call as never);
      if (result instanceof Refusal || each.route.answer.schema) return result as never;
      return redirect(call.reply, (result as Redirect).location);
    });
  }
}

/**
 * Returns the handler of a route that declares `once`. The handler does the work once for each request, and answers repetitions with the
 * recorded result.
 */
function answerOf(db: Database, { once: steps }: Extract<ServedRoute, { once: unknown }>, keyIn: Authorizer['keyIn']) {
  return async (call: never, http: Call<Route>): Promise<unknown> => {
    const refused = await steps.check?.(call);
    if (refused) return refused;
    const { keySealedFor } = steps;
    const result =
      keySealedFor === undefined
        ? answerOnce(
            await once<unknown, Refusal>(db, http.once, async (tx) => {
              const made = await steps.work(tx, call);
              return made instanceof Refusal ? { kind: 'failed', failure: made } : { kind: 'done', response: made };
            }),
            (failure) => failure,
          )
        : await answerWithKey(db, http.once, { of: keySealedFor, secret: () => keyIn(http.request) }, (tx) =>
            steps.work(tx, call),
          );
    return result instanceof Refusal || !steps.answer ? result : await steps.answer(result as never, call);
  };
}

/**
 * Does work only once for each `Idempotency-Key`. The result of the work has a member `key` with a raw key. The result is stored for
 * repetitions together with
 * the raw key. Both are encrypted with the caller's own key, which is not stored. Without an `Idempotency-Key` nothing is stored.
 * `sealing.of` names the work.
 */
async function answerWithKey(
  db: Database,
  repeatable: RepeatableRequest | undefined,
  sealing: { readonly of: string; secret(): string },
  work: (tx: Queryable) => Promise<unknown>,
): Promise<unknown> {
  if (!repeatable || isClientAttempt(repeatable)) return await db.transaction(work);
  const use = `answer to ${sealing.of}, Idempotency-Key ${repeatable.key}`;
  const outcome = await once<{ readonly sealed: string }, Refusal>(db, repeatable, async (tx) => {
    const result = await work(tx);
    if (result instanceof Refusal) return { kind: 'failed', failure: result };
    const { key, ...rest } = result as { readonly key: string };
    return { kind: 'done', response: { ...rest, sealed: seal(key, sealing.secret(), use) } };
  });
  const answer = answerOnce(outcome, (failure) => failure);
  if (answer instanceof Refusal) return answer;
  const { sealed, ...rest } = answer;
  return { ...rest, key: unseal(sealed, sealing.secret(), use) };
}
