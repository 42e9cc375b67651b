/** Reads the standard environment variables of OpenTelemetry that the exporters of OpenTelemetry do not read themselves. */

import { readFileSync } from 'node:fs';
import type https from 'node:https';
import type { Resource } from '@opentelemetry/resources';
import { optionsOfProxy } from '@runyard/system/outgoing/outgoing';
import type { Logger } from 'pino';

type Env = Readonly<Record<string, string | undefined>>;
type Signal = 'METRICS' | 'TRACES' | 'LOGS';

/**
 * Returns whether a signal is sent by OTLP: an endpoint is set for it, and neither `OTEL_SDK_DISABLED` nor `OTEL_{signal}_EXPORTER=none`
 * turns it off. The standard names a default endpoint, but without a set endpoint this process sends nothing.
 */
export function exportsSignal(env: Env, signal: Signal): boolean {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return false;
  if (!/^\s*(?:otlp)?\s*$/.test(env[`OTEL_${signal}_EXPORTER`] ?? '')) return false;
  return Boolean(env[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`] || env.OTEL_EXPORTER_OTLP_ENDPOINT);
}

/** Returns the encoding in which a signal is sent. gRPC is not supported, because every collector also accepts HTTP. */
export function protocolOf(env: Env, signal: Signal): 'http/protobuf' | 'http/json' {
  const wanted = env[`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`] || env.OTEL_EXPORTER_OTLP_PROTOCOL;
  return wanted === 'http/json' ? wanted : 'http/protobuf';
}

/** Returns the options of an exporter. Behind a proxy, they replace those that the exporter makes of its variables for certificates. */
export function exporterOptions(env: Env, signal: Signal): { readonly httpAgentOptions?: https.AgentOptions } {
  const proxy = optionsOfProxy();
  if (proxy === undefined) return {};
  const files = { ca: 'CERTIFICATE', cert: 'CLIENT_CERTIFICATE', key: 'CLIENT_KEY' };
  const certificates = Object.entries(files).flatMap(([option, name]) => {
    const file = env[`OTEL_EXPORTER_OTLP_${signal}_${name}`] || env[`OTEL_EXPORTER_OTLP_${name}`];
    return file ? [[option, readFileSync(file)]] : [];
  });
  return { httpAgentOptions: { keepAlive: true, ...proxy, ...Object.fromEntries(certificates) } };
}

/** Returns the value of a variable if it is a whole number above 0, else `otherwise`. */
export function wholeOf(text: string | undefined, otherwise: number): number {
  const value = Number(text);
  return text && Number.isInteger(value) && value > 0 ? value : otherwise;
}

/**
 * Returns the attributes that all metrics, traces and log lines of this process have. They come only from `OTEL_SERVICE_NAME` and
 * `OTEL_RESOURCE_ATTRIBUTES`.
 */
export async function resourceOf(): Promise<Resource> {
  const { detectResources, envDetector, resourceFromAttributes } = await import('@opentelemetry/resources');
  return resourceFromAttributes({ 'service.name': 'runyard' }).merge(detectResources({ detectors: [envDetector] }));
}

/** Logs the errors of the OpenTelemetry libraries, for example that a collector is unreachable. */
export async function logDiagnostics(log: Pick<Logger, 'warn'>): Promise<void> {
  const { diag, DiagLogLevel } = await import('@opentelemetry/api');
  const warn = (message: string) => log.warn({ otel: message.slice(0, 300) }, 'OpenTelemetry reports a problem');
  const ignore = () => undefined;
  diag.setLogger(
    { error: warn, warn, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}
