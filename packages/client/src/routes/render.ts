import { routes } from '@runyard/contract/routes';
import type { Route } from '@runyard/contract/wire/route';

const isCalled = ({ allow }: Route): boolean => 'user' in allow || ('anyone' in allow && allow.anyone === 'always');

/** Returns the text of `table.ts`, made from the contract's route table. */
export function renderTable(): string {
  const entries = Object.entries<Route>(routes)
    .filter(([, route]) => isCalled(route))
    .map(([name, { method, path, answer, once }]) => {
      const facts = `${answer.schema === undefined ? ' raw' : ''}${once === undefined ? '' : ' once'}`;
      return `  ${name}: '${method} ${path}${facts}',`;
    });
  return `// Written by bin/generate from packages/contract/src/routes.ts.
import type { ClientRoutes } from './client-route.ts';

// biome-ignore format: one line a route
export const clientRoutes: ClientRoutes = {
${entries.join('\n')}
};
`;
}
