import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { longFiles } from './long-files.ts';

/**
 * The test files in three groups. The files of a group share processes and loaded modules, so a test file must not change global state
 * that other files use.
 */
export interface TestFiles {
  /**
   * Tests of whole programs (service, worker, sandbox and browser), and test files beside the sources of all packages except the
   * service.
   */
  readonly programs: readonly string[];
  /** Test files beside the sources of the service. They use the embedded PostgreSQL. */
  readonly service: readonly string[];
  /** Test files that depend on the database itself. They run a second time on a PostgreSQL server. */
  readonly database: readonly string[];
}

const serviceFolder = 'packages/service/';

/** Test files that also run on a PostgreSQL server, although they do not test a folder that sends SQL. */
const databaseSubjects = [
  // Tests which one of several equal, concurrent requests the database accepts.
  'packages/service/src/edges/http/api/idempotency.test.ts',
  // Tests that readers get events in the order in which the database commits transactions.
  'test/live-streams.test.ts',
];

/**
 * Returns the database tests that `bin/test` runs on a PostgreSQL server: the tests of `platform/store`, and every sixth of the other
 * files. `bin/test-long` runs all of them. In both cases, one of the tests prepares
 * every statement of the service on the server.
 */
export function sliceForServer(database: readonly string[]): string[] {
  const isOfStore = (file: string) => file.startsWith(`${serviceFolder}src/platform/store/`);
  const others = database.filter((file) => !isOfStore(file));
  return [...database.filter(isOfStore), ...others.filter((_, index) => index % 6 === 0)];
}

/**
 * Returns the groups of test files, with the files whose path contains `filter`. Includes files of `longFiles` only if `filter` is not
 * empty. Paths are relative to `root`.
 */
export function findTestFiles(root: string, filter: string): TestFiles {
  const find = (pattern: string) =>
    globSync(pattern, { cwd: root, exclude: (name) => name === 'node_modules' })
      .filter((file) => file.includes(filter))
      .sort();
  for (const file of [...databaseSubjects, ...longFiles])
    if (!existsSync(path.join(root, file))) throw new Error(`${file} is in a list of test files, but does not exist`);
  const sendingSql = foldersWithSql(root);
  const dependsOnDatabase = (file: string) =>
    sendingSql.has(folderOf(file)) && usesTestDatabase(path.join(root, file)) && !databaseSubjects.includes(file);
  const isKept = (file: string) => filter !== '' || !longFiles.includes(file);
  const packages = find('packages/*/src/**/*.test.ts').filter(isKept);
  return {
    programs: [
      ...find('test/**/*.test.ts').filter(isKept),
      ...packages.filter((file) => !file.startsWith(serviceFolder)),
    ],
    service: packages.filter((file) => file.startsWith(serviceFolder)),
    database: [...packages.filter(dependsOnDatabase), ...databaseSubjects.filter((file) => file.includes(filter))],
  };
}

/** Returns the room of a file of the service: a folder in a floor. */
const folderOf = (file: string): string => file.split('/').slice(0, 5).join('/');

/**
 * Returns the folders of the service whose code sends SQL. Only their tests run on the server: code in other folders, such as `http`,
 * reaches the database only through functions of these folders.
 */
function foldersWithSql(root: string): Set<string> {
  const sources = globSync(`${serviceFolder}src/**/*.ts`, { cwd: root }).filter((file) => !file.endsWith('.test.ts'));
  const isSending = (file: string) =>
    /\bdefineStatement\b|\.query[(<]/.test(readFileSync(path.join(root, file), 'utf8'));
  return new Set(sources.filter(isSending).map(folderOf));
}

const databaseModule = 'packages/service/test/database.ts';

/** Returns whether a test file imports `databaseModule`, directly or through other files. */
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
