import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Test files that can share a process: they change nothing that other test files see. The files share the modules of a process. */
export interface TestFiles {
  /** Beside the source of all packages but the service, and tests of whole programs: real service, worker, sandbox and browser. */
  readonly programs: readonly string[];
  /** Beside the source of the service, on the embedded PostgreSQL. */
  readonly service: readonly string[];
  /** Tests that depend on the database itself; they run again on a PostgreSQL server. */
  readonly database: readonly string[];
}

const serviceFolder = 'packages/service/';

/** Tests outside of folders with SQL that also run on the server. */
const databaseSubjects = [
  // Shows which of several equal concurrent requests the database accepts.
  'packages/service/src/edges/http/api/idempotency.test.ts',
  // Shows the order of transactions.
  'test/live-streams.test.ts',
];

/**
 * Files that take many seconds of the processor and check the same behaviour as other files, with other or more programs. `bin/test-long`
 * runs them, and `bin/test --filter` too.
 */
export const longFiles: readonly string[] = [
  // Clients of model providers: `model-runs.test.ts` asks the same gateway with the AI SDK.
  'test/model-clients.test.ts',
  // Attacks of `sandbox-probes.test.ts` and limits of `sandbox-limits.test.ts` against gVisor.
  'test/gvisor-probes.test.ts',
  // The bounds of bodies and streams, which their own tests show one by one.
  'test/memory-attacks.test.ts',
];

/**
 * Files of which `bin/test` runs a part, because they repeat tests with several programs or callers. `bin/test-long` runs all of each: it sets
 * TEST_LONG=1 (`test/support/long.ts`), or the variable of the file.
 */
export const filesInPart: readonly string[] = [
  // Half of the tests with each harness; those of `packages/agent` show each harness alone. Of the decisions and sessions of an ACP harness
  // those that `driver.approvals.test.ts` and `run-saved-workspace.test.ts` do not show.
  'test/interactive-runs.test.ts',
  'test/model-runs.test.ts',
  // Two trees on one slot in place of three.
  'test/children.test.ts',
  // Of three generated clients one; `published-client-python.test.ts` and `schemathesis.test.ts` read the same document and answers.
  'test/runs.test.ts',
  // The callers that a route lets in, but the weakest of each kind; `permission.test.ts` shows the order of roles.
  'packages/service/src/edges/http/server/access-table.test.ts',
  // For each route a third of the wrong bodies and half of the wrong parameters, other ones for the next route.
  'packages/service/src/edges/http/server/plain-faults.test.ts',
  // Fewer queries of each filter.
  'test/list-plans.test.ts',
  // One operation of 15; `answers.ts` compares the answers of all tests with the same document.
  'test/schemathesis.test.ts',
  // Kills at random moments; `chaos.test.ts` has some of them.
  'test/adoption.test.ts',
  'test/chaos.test.ts',
  'test/killed-parents.test.ts',
  'test/crash-database.test.ts',
  'test/live-streams.test.ts',
  // Two screens; `dashboard.test.ts` has some of the others.
  'test/dashboard/screens.test.ts',
  // A linked installation in place of npm's own.
  'test/newcomer.test.ts',
];

/**
 * Returns the part of the database tests that `bin/test` runs on the server: those of the store, the subjects above, and one of three
 * others. `bin/test-long` runs all of them: each statement is prepared on the server in both.
 */
export function sliceForServer(database: readonly string[]): string[] {
  const always = (file: string) =>
    file.startsWith(`${serviceFolder}src/platform/store/`) || databaseSubjects.includes(file);
  const others = database.filter((file) => !always(file));
  return [...database.filter(always), ...others.filter((_, index) => index % 3 === 0)];
}

/**
 * Returns the test files of the repository whose path contains `filter`, by the group that runs them; those of `longFiles` only if there is
 * a filter. Paths are relative to `root`.
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

/** Returns the room of the service that a file belongs to: a folder in a floor. */
const folderOf = (file: string): string => file.split('/').slice(0, 5).join('/');

/**
 * Returns the folders of the service whose code sends SQL. The tests of the others, such as `http`, reach the database only through
 * functions of these folders, whose own tests run on the server, where a test also prepares each statement.
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
