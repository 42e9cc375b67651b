import type * as Http from 'node:http';

/**
 * Node's http module, loaded with `getBuiltinModule`. The statement `import 'node:http'` would read every export of the module, and one
 * of the exports loads undici.
 */
export const http: typeof Http = process.getBuiltinModule('node:http');
