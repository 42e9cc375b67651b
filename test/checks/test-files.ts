import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';

export interface TestFiles {
  /** Beside the source of all packages but the service, and tests of whole programs: real service, worker, sandbox and browser. */
  readonly programs: readonly string[];
  /** Beside the source of the service, on the embedded PostgreSQL. None changes what other files of its process see. */
  readonly service: readonly string[];
  /** Tests that depend on the database itself: run again on a PostgreSQL server. */
  readonly database: readonly string[];
}

const serviceFolder = 'packages/service/';

/**
 * Tests across programs whose subject is the order of the database's transactions. `test/export-import.test.ts` starts a server of its
 * own, and `test/list-plans.test.ts` is about the plans of the embedded database alone.
 */
const databaseSubjects = ['test/live-streams.test.ts'];

/**
 * Folders, and the table of all routes, without SQL of their own. Their tests reach the database only through functions of the domains, whose own tests run on
 * the server, where a test also prepares each statement.
 */
const withoutSql = [
  'packages/service/src/http/api/',
  'packages/service/src/http/agent/',
  'packages/service/src/http/pages/',
  'packages/service/src/http/server/access-table.test.ts',
];

/** Returns all test files of the repository whose path contains `filter`, by the group that runs them. Paths are relative to `root`. */
export function findTestFiles(root: string, filter: string): TestFiles {
  const find = (pattern: string) =>
    globSync(pattern, { cwd: root, exclude: (name) => name === 'node_modules' })
      .filter((file) => file.includes(filter))
      .sort();
  const packages = find('packages/*/src/**/*.test.ts');
  const acrossPrograms = find('test/**/*.test.ts');
  for (const file of databaseSubjects)
    if (!existsSync(path.join(root, file))) throw new Error(`test-files.ts names ${file}, which does not exist`);
  const dependsOnDatabase = (file: string) =>
    !withoutSql.some((folder) => file.startsWith(folder)) && usesTestDatabase(path.join(root, file));
  return {
    programs: [...acrossPrograms, ...packages.filter((file) => !file.startsWith(serviceFolder))],
    service: packages.filter((file) => file.startsWith(serviceFolder)),
    database: [
      ...packages.filter(dependsOnDatabase),
      ...acrossPrograms.filter((file) => databaseSubjects.includes(file)),
    ],
  };
}

const databaseModule = 'packages/service/test/database.ts';

/** Tells whether a test imports the test database, directly or through files that it imports. */
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
