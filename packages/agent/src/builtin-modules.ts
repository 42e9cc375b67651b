import type { Hash } from 'node:crypto';
import type * as Fs from 'node:fs';
import type * as Http from 'node:http';

/**
 * Built-in modules without their ESM facade: `import 'node:http'` reads every export of the module, one of which loads
 * undici, and `import 'node:fs'` loads fs/promises (`bench/modules.md` has both ways). The agent's start counts in every
 * run.
 */
export const fs: typeof Fs = process.getBuiltinModule('node:fs');

/** Loaded by the call: `report-artifact` needs none. */
export const loadHttp = (): typeof Http => process.getBuiltinModule('node:http');

/** Loaded by the call: most runs hash nothing. */
export const createHash = (algorithm: string): Hash => process.getBuiltinModule('node:crypto').createHash(algorithm);
