/**
 * Makes the trace of a run from the database rows of the run. Sandboxes send no spans. Spans contain ids, states, numbers and times, and no
 * text of people or agents.
 */
import { createHash } from 'node:crypto';
import { spanNames } from '@runyard/contract/metrics/trace-names';
import type { Logger } from 'pino';
import type { EndedSpan, SpanPlace, Traces } from '../../../platform/metrics/open-traces.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { type ModelRequest, readRequestsOfExecution } from '../../../team/usage/requests-of-execution.ts';
import type { CreatedRun, EndedTurn, RunTracer } from './notice.ts';
import { type Action, readActions, readTracedExecution, type TracedExecution } from './read-turn.ts';

/** Wait this time after the end of a turn, because the rows of its last model request and its last events are written a moment later. */
const settleMs = 2_000;
/** Maximum number of ended turns that wait until their rows are read. Further turns are not traced. */
const maxWaiting = 10_000;

const digest = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Returns the ids of the trace and its root span. They depend only on the run's id, so every process adds spans to the same trace. */
export const rootOf = (runId: string): SpanPlace => ({
  traceId: digest(`trace of run ${runId}`).slice(0, 32),
  spanId: digest(`root of run ${runId}`).slice(0, 16),
});

/**
 * Adds the trace id of the run to a line of the log that has a `run_id`, so that an operator can find the trace of the run. If the line is
 * about a request, the trace id of the request moves to `request_trace_id`.
 */
export function withTraceOfRun(line: Record<string, unknown>): Record<string, unknown> {
  const { run_id: runId, trace_id: ofRequest } = line;
  if (typeof runId !== 'string') return line;
  const traceId = { trace_id: rootOf(runId).traceId };
  return ofRequest === undefined ? { ...line, ...traceId } : { ...line, ...traceId, request_trace_id: ofRequest };
}

/**
 * Returns the trace id and span id in a valid `traceparent` (W3C Trace Context, 3.2). Ignores the flags, so that a caller cannot influence
 * sampling.
 */
function placeOf(traceparent: string | undefined): SpanPlace | undefined {
  const [, traceId, spanId] =
    /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?:-|$)/.exec(traceparent ?? '') ??
    [];
  return traceId && spanId ? { traceId, spanId } : undefined;
}

interface TraceDeps {
  readonly db: Queryable;
  readonly traces: Traces;
  readonly log: Pick<Logger, 'warn'>;
  /** Time between the end of a turn and the reading of its rows, in milliseconds. Default: 2,000. */
  readonly settleMs?: number;
}

/** Makes the tracer of a process. `close` sends the spans of all ended turns at once, without the usual wait after the end of a turn. */
export function makeRunTracer(deps: TraceDeps): RunTracer & { close(): Promise<void> } {
  const { traces, log } = deps;
  const waiting = new Map<NodeJS.Timeout, EndedTurn>();
  const working = new Set<Promise<void>>();
  const work = (turn: EndedTurn): void => {
    const done = sendTurn(deps, turn)
      .catch((error: unknown) => log.warn({ err: error }, 'a turn was not traced'))
      .then(() => void working.delete(done));
    working.add(done);
  };
  return {
    created: (run) => {
      const root = rootOf(run.id);
      if (traces.isSampled(root.traceId)) traces.sendRoot(root, requestSpan(run), placeOf(run.request?.traceparent));
    },
    ended: (turn) => {
      if (waiting.size >= maxWaiting || !traces.isSampled(rootOf(turn.runId).traceId)) return;
      const timer = setTimeout(() => {
        waiting.delete(timer);
        work(turn);
      }, deps.settleMs ?? settleMs).unref();
      waiting.set(timer, turn);
    },
    close: async () => {
      for (const [timer, turn] of waiting) {
        clearTimeout(timer);
        work(turn);
      }
      waiting.clear();
      await Promise.all(working);
    },
  };
}

function requestSpan({ id, source, request }: CreatedRun): EndedSpan {
  const endMs = Date.now();
  const startMs = request?.receivedMs ?? endMs;
  return { name: spanNames.request.name, kind: 'server', startMs, endMs, attributes: { runId: id, source } };
}

async function sendTurn({ db, traces }: TraceDeps, turn: EndedTurn): Promise<void> {
  const execution = await readTracedExecution(db, turn.executionId);
  if (!execution) return;
  const beganMs = Math.max(turn.wantedMs, execution.startedMs ?? Number.POSITIVE_INFINITY);
  const isPlayed = beganMs <= turn.endMs;
  const [requests, actions] = isPlayed
    ? await Promise.all([
        readRequestsOfExecution(db, turn, { fromMs: beganMs }),
        readActions(db, turn, { fromMs: beganMs, toMs: turn.endMs }),
      ])
    : [[], []];
  for (const span of spansOfTurn(turn, execution, requests, actions)) traces.send(rootOf(turn.runId), span);
}

/**
 * Returns the spans of a turn: a span for the turn, for each model request and for each tool call. For the first turn of an execution,
 * also returns spans for the wait in the queue and for the start.
 */
export function spansOfTurn(
  { runId, state, code, wantedMs, endMs }: EndedTurn,
  execution: TracedExecution,
  requests: readonly ModelRequest[],
  actions: readonly Action[],
): EndedSpan[] {
  const { number, assignedMs, startedMs, harness, backend, modelId, conversationId } = execution;
  const isFailed = state === 'FAILED' || state === 'ERROR';
  const failure = { ...(isFailed ? { isFailed } : {}) };
  const ends = { state, ...(code === undefined ? {} : { errorType: code }) };
  const common = { runId, execution: number };
  const spans: EndedSpan[] = [];
  const isFirst = startedMs === null || startedMs >= wantedMs;
  if (isFirst) {
    const isLast = assignedMs === null;
    spans.push({
      name: spanNames.queue.name,
      kind: 'internal',
      startMs: wantedMs,
      endMs: assignedMs ?? endMs,
      attributes: { ...common, ...(isLast ? ends : {}) },
      ...(isLast ? failure : {}),
    });
  }
  if (isFirst && assignedMs !== null) {
    const isLast = startedMs === null;
    spans.push({
      name: spanNames.start.name,
      kind: 'internal',
      startMs: assignedMs,
      endMs: startedMs ?? endMs,
      attributes: { ...common, ...(backend === null ? {} : { backend }), ...(isLast ? ends : {}) },
      ...(isLast ? failure : {}),
    });
  }
  if (startedMs === null) return spans;
  spans.push({
    name: spanNames.turn.name,
    kind: 'internal',
    startMs: Math.max(wantedMs, startedMs),
    endMs,
    attributes: {
      ...common,
      ...ends,
      operation: spanNames.turn.name,
      harness,
      ...modelOf(modelId),
      conversation: conversationId,
    },
    ...failure,
    children: [...requests.map(requestOfModel), ...actions.map((action) => callOfTool(action, endMs))],
  });
  return spans;
}

const conventionalProviders: Readonly<Record<string, string>> = { google: 'gcp.gemini' };

/** Splits a model id such as `anthropic/claude-opus-5-5` into provider and model. */
function modelOf(id: string): Pick<EndedSpan['attributes'], 'provider' | 'model'> {
  const [, provider, model] = /^(\w+)\/([\w.:/@-]{1,100})$/.exec(id) ?? [];
  if (provider === undefined || model === undefined)
    return { provider: 'runyard', model: id === 'runbook' ? id : 'other' };
  return { provider: conventionalProviders[provider] ?? provider, model };
}

function requestOfModel(request: ModelRequest): EndedSpan {
  const { input, output, cacheRead, cacheWrite } = request.tokens;
  const names = modelOf(request.modelId);
  const isFailed = request.status >= 400;
  return {
    name: `${spanNames.model.name} ${names.model}`,
    kind: 'client',
    startMs: request.endMs - request.durationMs,
    endMs: request.endMs,
    attributes: {
      operation: spanNames.model.name,
      ...names,
      // OpenTelemetry's conventions count cached tokens as input tokens.
      inputTokens: input + cacheRead + cacheWrite,
      outputTokens: output,
      cacheReadTokens: cacheRead,
      cacheWriteTokens: cacheWrite,
      ...(isFailed ? { errorType: String(request.status) } : {}),
    },
    ...(isFailed ? { isFailed } : {}),
  };
}

/** Agents choose the names of tools, so the span shows the category of the tool and not its name. */
function callOfTool({ category, startMs, endMs, state }: Action, turnEndMs: number): EndedSpan {
  const isFailed = state === 'failed' || state === 'denied';
  return {
    name: `${spanNames.tool.name} ${category}`,
    kind: 'internal',
    startMs,
    endMs: endMs ?? turnEndMs,
    attributes: { operation: spanNames.tool.name, tool: category, ...(isFailed ? { errorType: state } : {}) },
    ...(isFailed ? { isFailed } : {}),
  };
}
