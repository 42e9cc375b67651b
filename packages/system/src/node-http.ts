import type * as Http from 'node:http';

/**
 * Node's http module without its ESM facade: `import 'node:http'` reads every export of the module, and one export loads undici
 * (`bench/modules.md` has the times of both ways).
 */
export const http: typeof Http = process.getBuiltinModule('node:http');
