import type * as Http from 'node:http';

/**
 * Node's http module without its ESM facade. The statement `import 'node:http'` would read every export of the module, and one of the
 * exports loads undici (`bench/modules.md` has the times of both variants).
 */
export const http: typeof Http = process.getBuiltinModule('node:http');
