import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import { withoutQuery } from './shown-path.ts';

/** Knows which methods each path has. */
export interface KnownMethods {
  /** Returns the refusal of a request that no route takes: 405 with `Allow` if its path has other methods, else 404. */
  refusalOf(request: FastifyRequest): Refusal;
}

const patternOf = (url: string): RegExp => {
  const escaped = url.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${escaped.replaceAll(/:\w+/g, '[^/]+').replaceAll('*', '.*')}$`);
};

/** Collects the methods of every route that is registered after this call. */
export function collectMethods(app: FastifyInstance): KnownMethods {
  const known = new Map<string, { pattern: RegExp; parameters: number; methods: Set<string> }>();
  app.addHook('onRoute', ({ url, method }) => {
    const entry = known.get(url) ?? {
      pattern: patternOf(url),
      parameters: url.split(/[:*]/).length,
      methods: new Set<string>(),
    };
    for (const each of [method].flat()) entry.methods.add(each);
    known.set(url, entry);
  });
  return {
    refusalOf: ({ url, method }) => {
      const path = withoutQuery(url);
      const fitting = [...known.values()].filter(({ pattern }) => pattern.test(path));
      // The router prefers a written segment to a parameter.
      const fewest = Math.min(...fitting.map(({ parameters }) => parameters));
      const allowed = fitting.filter((each) => each.parameters === fewest).flatMap(({ methods }) => [...methods]);
      if (allowed.length === 0) return refuse('resource_not_found', { detail: 'There is nothing at this path.' });
      const allow = [...new Set(allowed)].join(', ');
      const detail = `${method} is not a method of this path. It has ${allow}.`;
      return refuse('invalid_request', { status: 405, detail, headers: { allow } });
    },
  };
}
