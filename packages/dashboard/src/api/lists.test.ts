import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const source = path.resolve(import.meta.dirname, '..');
/**
 * A query: whether its key contains the team, its key, the name of the route that it calls, and the member of the answer that it keeps, if
 * it keeps only one.
 */
const queries = [
  /(queryKey: )(\[[^\]]+\]),\s*queryFn: async \([^)]*\) =>\s*\(?await client\.(\w+)\([^\n]*?\)(\)\.\w+)?[,\s}]*\)?[;,]?\n/g,
  /use(Team)?Read\(\s*(\[[^\]]+\]),\s*(?:async )?\(client\) =>\s*\(?(?:await )?client\.(\w+)\([^\n]*?\)(\)\.\w+)?\)?(?:, \{[^\n]*)?[;,]?\n/g,
];

// Queries with the same key share their answer. If two of them keep it in different forms, a screen gets the data of another screen and
// fails.
test('queries with the same key keep the same part of the same answer', () => {
  const kept = new Map<string, Set<string>>();
  for (const file of globSync('**/*.{ts,tsx}', { cwd: source }))
    for (const query of queries)
      for (const [, start, parts = '', route = '', member = ''] of readFileSync(
        path.join(source, file),
        'utf8',
      ).matchAll(query)) {
        const key = start === 'Team' ? parts.replace(/^\['[^']+'/, '$&, team.uid') : parts;
        kept.set(key, (kept.get(key) ?? new Set()).add(`${route}${member}`));
      }
  expect(kept.size).toBeGreaterThan(30);
  expect([...kept].filter(([, forms]) => forms.size > 1).map(([key, forms]) => [key, ...forms])).toEqual([]);
});
