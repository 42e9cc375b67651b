/** Checks a request of an agent with the service's body parser, the schemas of the contract and the service's rules for artifacts. */

import { routes } from '@runyard/contract/routes';
import { apiPrefix, type Route } from '@runyard/contract/wire/route';
import { maxValuesOfReport, parseJsonBody } from '../../../packages/service/src/edges/http/server/json-body.ts';
import { queryDecoder } from '../../../packages/service/src/edges/http/server/query.ts';
import { checkReportData } from '../../../packages/service/src/runs/files/artifacts/report-data.ts';

/** A request with its whole body. */
export interface FakeRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: Buffer;
}

const agentRoutes = Object.values<Route>(routes)
  .filter(({ path }) => path.startsWith('/harness-support/'))
  .map((route) => ({ route, pattern: new RegExp(`^${apiPrefix}${route.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`) }));

/**
 * Resolves to the reason why the service would refuse the request with 400. Resolves to undefined if the service would accept the
 * request, or has no such route.
 */
export async function whyRefused({ method, path, query, body }: FakeRequest): Promise<string | undefined> {
  const { route } = agentRoutes.find(({ route, pattern }) => route.method === method && pattern.test(path)) ?? {};
  try {
    if (route?.query) route.query.parse(queryDecoder(route.query)(valuesOf(query)));
    if (!route?.body) return undefined;
    const value = route.body.parse(await parseJsonBody(body, maxValuesOfReport));
    if (route !== routes.reportArtifact) return undefined;
    const { artifact_type, data } = routes.reportArtifact.body.parse(value);
    const checked = checkReportData(artifact_type, data);
    return checked.ok ? undefined : checked.faults.map((fault) => `${fault.path}: ${fault.message}`).join('; ');
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Returns the query in the form in which the service's HTTP server parses it: a repeated name has a list of values. */
function valuesOf(query: URLSearchParams): Record<string, string | string[]> {
  const names = [...new Set(query.keys())];
  return Object.fromEntries(
    names.map((name) => {
      const values = query.getAll(name);
      return [name, values.length === 1 ? (values[0] ?? '') : values];
    }),
  );
}
