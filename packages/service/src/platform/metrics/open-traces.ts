/**
 * Sends traces by OTLP. Only this file loads the libraries of OpenTelemetry for traces. It loads them only if a variable sets a
 * destination for traces.
 */

import type { SpanContext } from '@opentelemetry/api';
import { type SpanAttribute, spanAttributes } from '@runyard/contract/metrics/trace-names';
import type { Logger } from 'pino';
import { exporterOptions, exportsSignal, logDiagnostics, protocolOf, resourceOf, wholeOf } from './otel-variables.ts';

/** A span that has ended. */
export interface EndedSpan {
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client';
  /** Milliseconds since 1970. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Partial<Record<SpanAttribute, string | number>>>;
  /** True: the measured work failed. */
  readonly isFailed?: boolean;
  readonly children?: readonly EndedSpan[];
}

/** The ids of a span and of its trace: `traceId` has 32 hex digits, `spanId` 16. */
export interface SpanPlace {
  readonly traceId: string;
  readonly spanId: string;
}

export interface Traces {
  /**
   * Returns whether the trace is sent. The result depends only on the id and the settings, so all processes decide in the same way,
   * and an API caller cannot choose.
   */
  isSampled(traceId: string): boolean;
  /** Sends the root span of a trace. `link`: a span in the trace of the API caller, to which the root span links. */
  sendRoot(place: SpanPlace, root: EndedSpan, link?: SpanPlace): void;
  /** Sends a span and its children, as a child of `parent`. */
  send(parent: SpanPlace, span: EndedSpan): void;
  /** Sends the waiting spans. */
  close(): Promise<void>;
}

/** Largest number of spans that wait to be sent. Further spans are dropped. */
const maxWaiting = 10_000;

type Env = Readonly<Record<string, string | undefined>>;

/** Opens traces. Returns undefined if no variable sets a destination for traces or the sampling ratio is 0. */
export async function openTraces(env: Env, log: Pick<Logger, 'warn'>): Promise<Traces | undefined> {
  const ratio = ratioOf(env);
  if (!exportsSignal(env, 'TRACES') || ratio === 0) return undefined;
  const [api, { AlwaysOnSampler, BatchSpanProcessor, RandomIdGenerator, TracerProvider }, resource] = await Promise.all(
    [import('@opentelemetry/api'), import('@opentelemetry/sdk-trace'), resourceOf(), logDiagnostics(log)],
  );
  const { OTLPTraceExporter } =
    protocolOf(env, 'TRACES') === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto');
  const random = new RandomIdGenerator();
  /** The ids of the next root span. They are computed from the run, so every process knows the trace of a run without reading a row. */
  let rootPlace: SpanPlace | undefined;
  const provider = new TracerProvider({
    resource,
    sampler: new AlwaysOnSampler(),
    idGenerator: {
      generateTraceId: () => rootPlace?.traceId ?? random.generateTraceId(),
      generateSpanId: () => rootPlace?.spanId ?? random.generateSpanId(),
    },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter(exporterOptions(env, 'TRACES')),
        maxQueueSize: maxWaiting,
        scheduledDelayMillis: wholeOf(env.OTEL_BSP_SCHEDULE_DELAY, 5_000),
      }),
    ],
  });
  const tracer = provider.getTracer('runyard');
  const kinds = { internal: api.SpanKind.INTERNAL, server: api.SpanKind.SERVER, client: api.SpanKind.CLIENT };
  const contextOf = (place: SpanPlace): SpanContext => ({ ...place, traceFlags: api.TraceFlags.SAMPLED });

  const emit = (span: EndedSpan, parent: SpanPlace | undefined, link?: SpanPlace): SpanPlace => {
    const context = parent ? api.trace.setSpanContext(api.ROOT_CONTEXT, contextOf(parent)) : api.ROOT_CONTEXT;
    const attributes = Object.fromEntries(
      Object.entries(span.attributes).map(([name, value]) => [spanAttributes[name as SpanAttribute], value]),
    );
    const links = link ? [{ context: { ...contextOf(link), isRemote: true } }] : [];
    const made = tracer.startSpan(
      span.name,
      { kind: kinds[span.kind], startTime: span.startMs, attributes, links },
      context,
    );
    if (span.isFailed) made.setStatus({ code: api.SpanStatusCode.ERROR });
    made.end(Math.max(span.startMs, span.endMs));
    return made.spanContext();
  };
  const emitAll = (span: EndedSpan, parent: SpanPlace): void => {
    const place = emit(span, parent);
    for (const child of span.children ?? []) emitAll(child, place);
  };
  return {
    isSampled: (traceId) => isBelow(traceId, ratio),
    sendRoot: (place, root, link) => {
      rootPlace = place;
      try {
        emit(root, undefined, link);
      } finally {
        rootPlace = undefined;
      }
    },
    send: (parent, span) => emitAll(span, parent),
    close: async () => {
      await provider.shutdown().catch(() => undefined);
    },
  };
}

/**
 * Returns the share of the traces to send, 0 to 1, from `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`. The traces of API callers
 * have no influence on this, so a sampler `parentbased_…` works as if there were no parent.
 */
export function ratioOf(env: Env): number {
  const sampler = (env.OTEL_TRACES_SAMPLER || 'always_on').replace(/^parentbased_/, '');
  if (sampler === 'always_off') return 0;
  if (sampler !== 'traceidratio') return 1;
  const ratio = Number(env.OTEL_TRACES_SAMPLER_ARG || 1);
  return ratio >= 0 && ratio <= 1 ? ratio : 1;
}

/**
 * Returns whether a trace is within the ratio. Compares only the last 56 bits of the trace id, because these bits are random (W3C
 * Trace Context, level 2).
 */
export const isBelow = (traceId: string, ratio: number): boolean =>
  Number.parseInt(traceId.slice(-14), 16) < ratio * 2 ** 56;
