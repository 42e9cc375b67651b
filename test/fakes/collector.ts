/** A fake OpenTelemetry collector: receives metrics, traces and logs by OTLP over HTTP, and stores them. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';

/** An attribute in the JSON format of OTLP. */
interface KeyValue {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** A received span. Its attributes are an object with plain values instead of OTLP's list. */
interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code?: number; readonly message?: string };
}

/** A received log record. Its attributes are an object with plain values instead of OTLP's list. */
interface ReceivedLog {
  readonly timeUnixNano: string;
  readonly severityNumber: number;
  readonly severityText: string;
  readonly body: { readonly stringValue?: string };
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly traceId?: string;
  readonly spanId?: string;
  readonly flags?: number;
}

interface FakeCollector {
  readonly url: string;
  readonly requests: readonly {
    readonly path: string;
    readonly headers: IncomingHttpHeaders;
    readonly body: Buffer;
  }[];
  /** Returns the names of all metrics that were received as JSON. */
  metricNames(): Set<string>;
  /** Returns the spans that were received as JSON, in the order in which they arrived. */
  spans(): ReceivedSpan[];
  /** Returns the log records that were received as JSON, in the order in which they arrived. */
  logs(): ReceivedLog[];
  close(): Promise<void>;
}

const plain = (attributes: readonly KeyValue[] = []): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

interface Sent {
  readonly resourceMetrics?: readonly {
    readonly scopeMetrics: readonly { readonly metrics: readonly { readonly name: string }[] }[];
  }[];
  readonly resourceLogs?: readonly {
    readonly scopeLogs: readonly {
      readonly logRecords: readonly (Omit<ReceivedLog, 'attributes'> & { readonly attributes?: readonly KeyValue[] })[];
    }[];
  }[];
  readonly resourceSpans?: readonly {
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ReceivedSpan, 'attributes' | 'links'> & {
        readonly attributes?: readonly KeyValue[];
        readonly links?: ReceivedSpan['links'];
      })[];
    }[];
  }[];
}

export async function startFakeCollector(): Promise<FakeCollector> {
  const requests: { path: string; headers: IncomingHttpHeaders; body: Buffer }[] = [];
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const bytes = Buffer.concat(parts);
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes;
    requests.push({ path: request.url ?? '', headers: request.headers, body });
    response.writeHead(200, { 'content-type': String(request.headers['content-type']) });
    response.end(request.headers['content-type'] === 'application/json' ? '{}' : '');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sent = (): Sent[] =>
    requests
      .filter(({ headers }) => headers['content-type'] === 'application/json')
      .map(({ body }) => JSON.parse(body.toString('utf8')));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    metricNames: () =>
      new Set(
        sent()
          .flatMap(({ resourceMetrics = [] }) => resourceMetrics)
          .flatMap(({ scopeMetrics }) => scopeMetrics)
          .flatMap(({ metrics }) => metrics)
          .map(({ name }) => name),
      ),
    spans: () =>
      sent()
        .flatMap(({ resourceSpans = [] }) => resourceSpans)
        .flatMap(({ scopeSpans }) => scopeSpans)
        .flatMap(({ spans }) => spans)
        .map(({ attributes, links = [], ...span }) => ({ ...span, attributes: plain(attributes), links })),
    logs: () =>
      sent()
        .flatMap(({ resourceLogs = [] }) => resourceLogs)
        .flatMap(({ scopeLogs }) => scopeLogs)
        .flatMap(({ logRecords }) => logRecords)
        .map(({ attributes, ...log }) => ({ ...log, attributes: plain(attributes) })),
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
