/**
 * Sends the lines of the log by OTLP, in addition to standard error. Only this file loads the libraries of OpenTelemetry for logs. It loads
 * them only if variables request this.
 */

import type { Attributes } from '@opentelemetry/api';
import type { Logger } from 'pino';
import { isBelow, ratioOf, type SpanPlace } from './open-traces.ts';
import { exporterOptions, exportsSignal, logDiagnostics, protocolOf, resourceOf, wholeOf } from './otel-variables.ts';

/** Takes the lines that pino writes. */
export interface Logs {
  write(line: string): void;
  /** Sends the waiting lines, and gives up after `withinMs`. Default: 5,000. */
  close(withinMs?: number): Promise<void>;
}

/** Largest number of lines that wait to be sent. Further lines are only on standard error. */
const maxWaiting = 2_048;
/** Largest number of characters of the message and of each text in the attributes of a sent line. Longer texts are cut. */
const maxTextChars = 8_192;
const defaultCloseMs = 5_000;

type Line = Readonly<Record<string, unknown>>;

/**
 * Opens the sending of the log. Returns undefined unless `OTEL_LOGS_EXPORTER` is `otlp` and an endpoint is set. The log is not sent by
 * default, so an installation that sends metrics and traces does not begin to send its log. `log` takes the problems of the sending, and
 * `placeOf` returns the span to which a line belongs.
 */
export async function openLogs(
  env: Readonly<Record<string, string | undefined>>,
  log: Pick<Logger, 'warn'>,
  placeOf: (line: Line) => SpanPlace | undefined,
): Promise<Logs | undefined> {
  if (env.OTEL_LOGS_EXPORTER?.trim() !== 'otlp' || !exportsSignal(env, 'LOGS')) return undefined;
  const [{ ROOT_CONTEXT, trace, TraceFlags }, { BatchLogRecordProcessor, LoggerProvider }, resource] =
    await Promise.all([
      import('@opentelemetry/api'),
      import('@opentelemetry/sdk-logs'),
      resourceOf(),
      logDiagnostics(log),
    ]);
  const { OTLPLogExporter } =
    protocolOf(env, 'LOGS') === 'http/json'
      ? await import('@opentelemetry/exporter-logs-otlp-http')
      : await import('@opentelemetry/exporter-logs-otlp-proto');
  const provider = new LoggerProvider({
    resource,
    logRecordLimits: { attributeValueLengthLimit: maxTextChars },
    processors: [
      new BatchLogRecordProcessor({
        exporter: new OTLPLogExporter(exporterOptions(env, 'LOGS')),
        maxQueueSize: maxWaiting,
        scheduledDelayMillis: wholeOf(env.OTEL_BLRP_SCHEDULE_DELAY, 1_000),
      }),
    ],
  });
  const logger = provider.getLogger('runyard');
  const ratio = exportsSignal(env, 'TRACES') ? ratioOf(env) : 0;
  const contextOf = (place: SpanPlace | undefined) => {
    if (!place) return ROOT_CONTEXT;
    const traceFlags = isBelow(place.traceId, ratio) ? TraceFlags.SAMPLED : TraceFlags.NONE;
    return trace.setSpanContext(ROOT_CONTEXT, { ...place, traceFlags });
  };
  return {
    write: (text) => {
      const line: Line = JSON.parse(text);
      // A line about a failure of the sending is not sent, because each failure to send this line would add another line.
      if ('otel' in line) return;
      const { level, time, msg, ...attributes } = line;
      logger.emit({
        timestamp: Number(time),
        ...severityOf(Number(level)),
        body: String(msg ?? '').slice(0, maxTextChars),
        attributes: attributes as Attributes,
        context: contextOf(placeOf(line)),
      });
    },
    close: async (withinMs = defaultCloseMs) => {
      const late = new Promise<void>((resolve) => setTimeout(resolve, withinMs).unref());
      await Promise.race([provider.shutdown().catch(() => undefined), late]);
    },
  };
}

const severities = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'] as const;

/** Returns the severity of a level of pino, 10 (trace) to 60 (fatal). OpenTelemetry has four numbers for each severity, from 1. */
function severityOf(level: number): { readonly severityNumber: number; readonly severityText: string } {
  const index = Math.min(Math.max(Math.floor(level / 10) - 1, 0), severities.length - 1);
  return { severityNumber: index * 4 + 1, severityText: severities[index] ?? 'INFO' };
}
