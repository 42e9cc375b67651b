import { type ApiError, type Client, createClient, type ReceivedEvent } from '@runyard/client';
import type { LiveEvent } from '@runyard/contract/runs/live-events';
import { apiKey, type Context, requireApiKey, requireOrigin } from '../context/context.ts';
import { Failure } from '../exits/failure.ts';
import { addressSettings } from '../supervise/running-settings.ts';
import { inCommandWords } from './command-words.ts';
import { requireSameSettings } from './same-settings.ts';

/**
 * Creates a client of the service at RUNYARD_BASE_URL. If this setting is absent, creates a client of the service that runs on the data
 * folder. @throws Failure if there is no service, if the address of the service differs from RUNYARD_HOST and RUNYARD_PORT, or if there is
 * no key for the service
 */
export function connect(context: Context, send?: typeof fetch): Client {
  requireSameSettings(context, addressSettings);
  // With RUNYARD_BASE_URL, the key may be missing. Then the first request shows whether a server answers at all, and the failure says
  // that the server needs a key.
  const key = context.settings.RUNYARD_BASE_URL === undefined ? requireApiKey(context) : apiKey(context);
  return createClient({
    baseUrl: requireOrigin(context),
    ...(key === null ? {} : { apiKey: key }),
    ...(context.settings.RUNYARD_TEAM === undefined ? {} : { teamUid: context.settings.RUNYARD_TEAM }),
    userAgent: 'runyard-cli',
    ...(send === undefined ? {} : { fetch: send }),
    strict: true,
  });
}

/** Creates a client that sends no API key, for a person who has no key yet: a key in the environment belongs to another person. */
export const connectWithoutKey = (context: Context): Client =>
  createClient({ baseUrl: requireOrigin(context), userAgent: 'runyard-cli', strict: true });

/**
 * If the service does not answer for this time, the command stops following a stream. A restart of the service takes only a few seconds.
 */
const patienceMs = 60_000;

/**
 * Yields the events of a run as they arrive. With `follow: false`, yields only the events that exist now. If the connection is lost,
 * reports this and reconnects.
 * @throws Failure if the service does not answer again in time; the reason of `signal` if `signal` is aborted
 */
export async function* followRun(
  context: Context,
  runId: string,
  options: { readonly signal: AbortSignal; readonly follow?: false; readonly lastEventId?: string },
): AsyncGenerator<ReceivedEvent<LiveEvent>> {
  const { signal } = options;
  const givenUp = new AbortController();
  let lostAt: number | undefined;
  const onLost = (reason: string) => {
    if (signal.aborted) return;
    if (lostAt === undefined) context.report(`the connection to the service is lost (${reason}); trying again ...`);
    lostAt ??= performance.now();
    if (performance.now() - lostAt > patienceMs) {
      const message = `the service has not answered for ${patienceMs / 1000} s. See: bin/runyard status; look at the run later: bin/runyard logs ${runId}`;
      givenUp.abort(new Failure(message));
    }
  };
  const send: typeof fetch = async (input, init) => {
    try {
      const response = await fetch(input, { ...init, redirect: 'manual' });
      if (response.ok) lostAt = undefined;
      else if (response.status >= 500) onLost(`it answered ${response.status}`);
      return response;
    } catch (error) {
      onLost(error instanceof Error && error.cause instanceof Error ? error.cause.message : 'no answer');
      throw error;
    }
  };
  const both = AbortSignal.any([signal, givenUp.signal]);
  yield* connect(context, send).streamRunEvents(runId, { ...options, signal: both });
}

/** Describes an error of the service: which members are wrong and why, or the trace id of an internal error. */
export function describeProblem({ problem }: ApiError): string {
  const trace = problem.status >= 500 && problem.trace_id ? ` (trace id ${problem.trace_id})` : '';
  const detail = problem.detail ?? problem.title;
  const members = (problem.errors ?? [])
    .filter(({ message }) => !detail.includes(message))
    .map(({ path, message }) => `\n  ${path}: ${message}`)
    .join('');
  const hint =
    problem.error_code === 'authentication_required'
      ? '\nThe key comes from RUNYARD_API_KEY, else RUNYARD_BOOTSTRAP_KEY, else bin/runyard login, else from the data folder for its own service.'
      : '';
  return `${problem.error_code}: ${inCommandWords(detail)}${inCommandWords(members)}${trace}${hint}`;
}
