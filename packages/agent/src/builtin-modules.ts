import type { Hash } from 'node:crypto';
import type * as Fs from 'node:fs';
import type * as Http from 'node:http';

/**
 * Built-in modules that are loaded without their ESM facade, so that the agent starts quickly: `import 'node:http'` reads every export of
 * the module, which also loads undici, and `import 'node:fs'` loads fs/promises.
 */
export const fs: typeof Fs = process.getBuiltinModule('node:fs');

/** Returns `node:http`. Loads it at the first call, because `report-artifact` does not need it. */
export const loadHttp = (): typeof Http => process.getBuiltinModule('node:http');

/** Creates a hash; loads `node:crypto` on the first call, because most runs need no hash. */
export const createHash = (algorithm: string): Hash => process.getBuiltinModule('node:crypto').createHash(algorithm);

/**
 * Returns the milliseconds of a clock that never goes back. Does not use `performance`, because the first use of `performance` loads nine
 * modules.
 */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;
