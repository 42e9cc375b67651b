/** Keeps the list of models of the endpoint on this machine, and updates it regularly. */
import type { LocalModels } from './local-models.ts';
import type { Upstream } from './providers.ts';

export interface ModelsLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface LocalListOptions {
  readonly log: ModelsLog | undefined;
  readonly now: () => Date;
  readonly fetchLocal: (upstream: Upstream, timeoutMs: number) => Promise<LocalModels>;
}

/** The last answer of the endpoint. */
export interface LocalList {
  /**
   * Returns the last list that the endpoint sent, or, if there is none, the last failure; undefined if no request was sent to the endpoint
   * yet.
   */
  current(): LocalModels | undefined;
  /** Requests the list in the background if the last list is old. */
  refresh(): void;
  /** Requests the list now; concurrent calls share one request. Waits at most `timeoutMs`, default 10 s. */
  ask(timeoutMs?: number): Promise<void>;
}

/** Maximum age of a list before the endpoint is asked again. After a failure it is asked again sooner. */
const freshMs = 60_000;
const retryMs = 10_000;
/**
 * Maximum times to wait for the list. The start of the service waits only a short time, because the service also starts without the list. A
 * run that needs the list waits longer.
 */
const startTimeoutMs = 3_000;
const taskTimeoutMs = 10_000;

/** The list of the endpoint that is configured now. */
export interface FollowedList {
  /** Returns the list of the endpoint; undefined if no endpoint is configured. */
  list(): LocalList | undefined;
  /** Requests the list for the first time. Waits for the endpoint at most 3 s. */
  start(): Promise<void>;
}

/** Keeps a list for the endpoint that `endpoint` returns, and begins a new list when it returns another one. */
export function followLocalList(endpoint: () => Upstream | undefined, options: LocalListOptions): FollowedList {
  let followed: { readonly of: Upstream; readonly list: LocalList } | undefined;
  const list = (): LocalList | undefined => {
    const of = endpoint();
    if (of === undefined) followed = undefined;
    else if (followed?.of !== of) followed = { of, list: makeLocalList(of, options) };
    return followed?.list;
  };
  return { list, start: async () => await list()?.ask(startTimeoutMs) };
}

function makeLocalList(upstream: Upstream, { log, now, fetchLocal }: LocalListOptions): LocalList {
  let local: LocalModels | undefined;
  let askedAt = 0;
  let asking: Promise<void> | undefined;
  const askWithin = async (timeoutMs: number): Promise<void> => {
    const before = local?.ok;
    const answer = await fetchLocal(upstream, timeoutMs);
    askedAt = now().getTime();
    // Keep the last list while the endpoint fails. A run then fails with the endpoint's answer to a model request, which is more precise
    // than the reason why there is no list.
    if (answer.ok || local?.ok !== true) local = answer;
    if (!answer.ok && before !== false)
      log?.warn({ reason: answer.reason }, 'the model endpoint does not list its models');
    if (answer.ok && before !== true) log?.info({ models: answer.ids.length }, 'the model endpoint lists its models');
  };
  const ask = (timeoutMs = taskTimeoutMs): Promise<void> => {
    asking ??= askWithin(timeoutMs).finally(() => {
      asking = undefined;
    });
    return asking;
  };
  return {
    current: () => local,
    refresh: () => {
      if (now().getTime() - askedAt >= (local?.ok ? freshMs : retryMs)) void ask();
    },
    ask,
  };
}
