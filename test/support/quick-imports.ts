/**
 * Resolves imports of this repository without Vitest, which sends a message to its main process for each of them. The messages would take
 * a quarter of the processor time that a test process needs to load the service.
 */
import { registerHooks } from 'node:module';

/** Places of modules that other packages of this repository import by name. */
const named = new Map<string, string>();

registerHooks({
  resolve(specifier, context, nextResolve) {
    const { parentURL } = context;
    const place =
      /^\.{1,2}\/.*\.ts$/.test(specifier) && parentURL ? new URL(specifier, parentURL).href : named.get(specifier);
    // Vitest sends no message for a module without a parent.
    if (place !== undefined) return nextResolve(place, { ...context, parentURL: undefined });
    const found = nextResolve(specifier, context);
    if (specifier.startsWith('@runyard/')) named.set(specifier, found.url);
    return found;
  },
});
