import type { FastifyInstance } from 'fastify';

/** Which methods a path has: for 405 with `Allow`. */
export interface KnownMethods {
  /** Empty: no route has the path. */
  of(path: string): string[];
}

const patternOf = (url: string): RegExp => {
  const escaped = url.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${escaped.replaceAll(/:\w+/g, '[^/]+').replaceAll('*', '.*')}$`);
};

/** Notes every route that is registered after this call. */
export function collectMethods(app: FastifyInstance): KnownMethods {
  const known = new Map<string, { pattern: RegExp; methods: Set<string> }>();
  app.addHook('onRoute', ({ url, method }) => {
    const entry = known.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() };
    for (const each of [method].flat()) entry.methods.add(each);
    known.set(url, entry);
  });
  return {
    of: (path) => [...known.values()].flatMap(({ pattern, methods }) => (pattern.test(path) ? [...methods] : [])),
  };
}
