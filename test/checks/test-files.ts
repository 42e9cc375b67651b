import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';

export interface TestFiles {
  /** Beside the source: units, and what talks to a database, on the embedded PostgreSQL. */
  readonly packages: readonly string[];
  /** Those of them that touch the database: run again on a PostgreSQL server. */
  readonly database: readonly string[];
  /** Whole programs: real service, worker and sandbox. */
  readonly endToEnd: readonly string[];
  /** In a real browser. */
  readonly browser: readonly string[];
}

/** All test files of the repository whose path holds `filter`, by the group that runs them; paths relative to `root`. */
export function findTestFiles(root: string, filter: string): TestFiles {
  const find = (pattern: string) =>
    globSync(pattern, { cwd: root, exclude: (name) => name === 'node_modules' })
      .filter((file) => file.includes(filter))
      .sort();
  const packages = find('packages/*/src/**/*.test.ts');
  const acrossPrograms = find('test/**/*.test.ts');
  const isBrowser = (file: string) => readFileSync(path.join(root, file), 'utf8').includes("from 'playwright-core'");
  return {
    packages: packages.filter((file) => !isBrowser(file)),
    database: [...packages, ...acrossPrograms].filter(
      (file) => !isBrowser(file) && usesTestDatabase(path.join(root, file)),
    ),
    endToEnd: acrossPrograms.filter((file) => !isBrowser(file)),
    browser: [...packages, ...acrossPrograms].filter(isBrowser),
  };
}

const databaseModule = 'packages/service/test/database.ts';

/** Whether a test reaches the test database, by itself or through the files beside it that it imports. */
function usesTestDatabase(file: string, seen = new Set<string>()): boolean {
  if (seen.has(file)) return false;
  seen.add(file);
  let source: string;
  try {
    source = readFileSync(file, 'utf8');
  } catch {
    return false;
  }
  for (const [, specifier] of source.matchAll(/from '(\.{1,2}\/[^']+\.ts)'/g)) {
    const imported = path.resolve(path.dirname(file), specifier ?? '');
    if (imported.endsWith(databaseModule) || usesTestDatabase(imported, seen)) return true;
  }
  return false;
}
