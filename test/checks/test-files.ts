import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Test files, by the group that runs them. Several files share a process and its modules, so they must not change what other test files see. */
export interface TestFiles {
  /** Test files beside the source of all packages except the service, and tests of whole programs with real service, worker, sandbox and browser. */
  readonly programs: readonly string[];
  /** Test files beside the source of the service, which use the embedded PostgreSQL. */
  readonly service: readonly string[];
  /** Test files that depend on the database itself. They run a second time on a PostgreSQL server. */
  readonly database: readonly string[];
}

const serviceFolder = 'packages/service/';

/** Tests outside the folders with SQL. They also run on the server. */
const databaseSubjects = [
  // Shows which of several equal concurrent requests the database accepts.
  'packages/service/src/edges/http/api/idempotency.test.ts',
  // Shows the order of transactions.
  'test/live-streams.test.ts',
];

/**
 * Files that take many seconds of processor time and check the same behaviour as other files, but with other or more programs. Only
 * `bin/test-long` and `bin/test --filter` run them.
 */
export const longFiles: readonly string[] = [
  // Clients of model providers. `model-runs.test.ts` also tests the gateway, with the AI SDK.
  'test/model-clients.test.ts',
  // The attacks of `sandbox-probes.test.ts` and the limits of `sandbox-limits.test.ts`, against gVisor.
  'test/gvisor-probes.test.ts',
  // The size limits of bodies and streams. Other tests check these limits one by one.
  'test/memory-attacks.test.ts',
];

/**
 * Files that repeat tests with several programs or callers. `bin/test` runs only a part of each file. `bin/test-long` runs the whole
 * file: it sets TEST_LONG=1 (`test/support/long.ts`) or the variable of the file.
 */
export const filesInPart: readonly string[] = [
  // Half of the tests with each harness, because the tests of `packages/agent` show each harness alone. For an ACP harness, the tests
  // of decisions and sessions that `driver.approvals.test.ts` and `run-saved-workspace.test.ts` do not contain.
  'test/interactive-runs.test.ts',
  'test/model-runs.test.ts',
  // Two trees of runs on one slot instead of three.
  'test/children.test.ts',
  // One of three generated clients. `published-client-python.test.ts` and `schemathesis.test.ts` read the same document and answers.
  'test/runs.test.ts',
  // The callers that a route accepts, except the weakest caller of each kind. `permission.test.ts` shows the order of roles.
  'packages/service/src/edges/http/server/access-table.test.ts',
  // A third of the wrong bodies and half of the wrong parameters of each route. The choice differs from route to route.
  'packages/service/src/edges/http/server/plain-faults.test.ts',
  // Fewer queries of each filter.
  'test/list-plans.test.ts',
  // One operation of 15. `answers.ts` compares the answers of all tests with the same document.
  'test/schemathesis.test.ts',
  // Fewer kills at random moments. `chaos.test.ts` also kills at random moments.
  'test/adoption.test.ts',
  'test/chaos.test.ts',
  'test/killed-parents.test.ts',
  'test/crash-database.test.ts',
  'test/live-streams.test.ts',
  // Two screens. `dashboard.test.ts` shows some of the other screens.
  'test/dashboard/screens.test.ts',
  // An installation with links instead of one by npm.
  'test/newcomer.test.ts',
];

/**
 * Returns the part of the database tests that `bin/test` runs on the server: the tests of the store, the subjects above, and one of
 * three others. `bin/test-long` runs all of them. Both prepare each statement on the server.
 */
export function sliceForServer(database: readonly string[]): string[] {
  const always = (file: string) =>
    file.startsWith(`${serviceFolder}src/platform/store/`) || databaseSubjects.includes(file);
  const others = database.filter((file) => !always(file));
  return [...database.filter(always), ...others.filter((_, index) => index % 3 === 0)];
}

/**
 * Returns the test files of the repository whose path contains `filter`, by the group that runs them. Includes files of `longFiles`
 * only if there is a filter. Paths are relative to `root`.
 */
export function findTestFiles(root: string, filter: string): TestFiles {
  const find = (pattern: string) =>
    globSync(pattern, { cwd: root, exclude: (name) => name === 'node_modules' })
      .filter((file) => file.includes(filter))
      .sort();
  const packages = find('packages/*/src/**/*.test.ts');
  const acrossPrograms = find('test/**/*.test.ts');
  for (const file of [...databaseSubjects, ...longFiles, ...filesInPart])
    if (!existsSync(path.join(root, file))) throw new Error(`test-files.ts names ${file}, which does not exist`);
  const sendingSql = foldersWithSql(root);
  const dependsOnDatabase = (file: string) =>
    sendingSql.has(folderOf(file)) && usesTestDatabase(path.join(root, file)) && !databaseSubjects.includes(file);
  const isLeftOut = (file: string) => filter === '' && longFiles.includes(file);
  return {
    programs: [
      ...acrossPrograms.filter((file) => !isLeftOut(file)),
      ...packages.filter((file) => !file.startsWith(serviceFolder)),
    ],
    service: packages.filter((file) => file.startsWith(serviceFolder)),
    database: [...packages.filter(dependsOnDatabase), ...databaseSubjects.filter((file) => file.includes(filter))],
  };
}

/** Returns the room of a file of the service: a folder in a floor. */
const folderOf = (file: string): string => file.split('/').slice(0, 5).join('/');

/**
 * Returns the folders of the service whose code sends SQL. The tests of other folders, such as `http`, reach the database only through
 * functions of these folders, and the tests of these functions run on the server.
 */
function foldersWithSql(root: string): Set<string> {
  const sources = globSync(`${serviceFolder}src/**/*.ts`, { cwd: root }).filter((file) => !file.endsWith('.test.ts'));
  const isSending = (file: string) =>
    /\bdefineStatement\b|\.query[(<]/.test(readFileSync(path.join(root, file), 'utf8'));
  return new Set(sources.filter(isSending).map(folderOf));
}

const databaseModule = 'packages/service/test/database.ts';

/** Returns whether a test imports the test database, directly or through other files. */
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
