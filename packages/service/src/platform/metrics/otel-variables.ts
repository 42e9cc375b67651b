/** The standard variables of OpenTelemetry that its exporters do not read themselves. */

import type { Resource } from '@opentelemetry/resources';
import type { Logger } from 'pino';

type Env = Readonly<Record<string, string | undefined>>;
type Signal = 'METRICS' | 'TRACES';

/**
 * Returns whether a signal is sent by OTLP: an endpoint is set for it, and neither `OTEL_SDK_DISABLED` nor `OTEL_{signal}_EXPORTER=none`
 * turns it off. Without an endpoint nothing is sent, although the standard names a default.
 */
export function exportsSignal(env: Env, signal: Signal): boolean {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return false;
  if (!/^\s*(?:otlp)?\s*$/.test(env[`OTEL_${signal}_EXPORTER`] ?? '')) return false;
  return Boolean(env[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`] || env.OTEL_EXPORTER_OTLP_ENDPOINT);
}

/** Returns the encoding of a signal. gRPC is not spoken: every collector takes HTTP too. */
export function protocolOf(env: Env, signal: Signal): 'http/protobuf' | 'http/json' {
  const wanted = env[`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`] || env.OTEL_EXPORTER_OTLP_PROTOCOL;
  return wanted === 'http/json' ? wanted : 'http/protobuf';
}

/** Returns the whole number above 0 in a variable, else the default of the standard. */
export function wholeOf(text: string | undefined, otherwise: number): number {
  const value = Number(text);
  return text && Number.isInteger(value) && value > 0 ? value : otherwise;
}

/** Returns the attributes of this process in all metrics and traces: only `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`. */
export async function resourceOf(): Promise<Resource> {
  const { detectResources, envDetector, resourceFromAttributes } = await import('@opentelemetry/resources');
  return resourceFromAttributes({ 'service.name': 'runyard' }).merge(detectResources({ detectors: [envDetector] }));
}

/** Logs the errors of the libraries, such as an unreachable collector, without the content of answers. */
export async function logDiagnostics(log: Pick<Logger, 'warn'>): Promise<void> {
  const { diag, DiagLogLevel } = await import('@opentelemetry/api');
  const warn = (message: string) => log.warn({ otel: message.slice(0, 300) }, 'OpenTelemetry reports a problem');
  const ignore = () => undefined;
  diag.setLogger(
    { error: warn, warn, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}
