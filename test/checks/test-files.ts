import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';

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
 * Files that take many seconds of processor time and check the same behaviour as other files, but with other or more programs. Only
 * `bin/test-long` and `bin/test --filter` run them.
 */
export const longFiles: readonly string[] = [
  // Tests the gateway with the public clients of model providers. `model-runs.test.ts` tests the gateway with the AI SDK.
  'test/model-clients.test.ts',
  // Repeats the attacks of `sandbox-probes.test.ts` and the limits of `sandbox-limits.test.ts` in a gVisor sandbox.
  'test/gvisor-probes.test.ts',
  // Installs packages of Debian in sandboxes with their own Debian. `own-system.test.ts` tests such sandboxes with another system.
  'test/system-packages.test.ts',
  // Breaks parts of an installation and waits until it notices. `waiting-services.test.ts` and `lost-database.test.ts` break the database.
  'test/faults.test.ts',
  // Stops one of two services behind a proxy for half a minute. `proxies.test.ts` tests the proxies with one service.
  'test/hanging-service.test.ts',
  // Starts the units of `deploy/systemd` on a machine with systemd. `systemd.test.ts` runs their programs without systemd.
  'test/systemd-machine.test.ts',
  // Sends 100,000 events to a tab of the dashboard. `story.test.ts` tests the blocks in which a tab shows events.
  'test/dashboard/many-events.test.ts',
  // Tests the size limits of bodies and streams together. Other tests check these limits one by one.
  'test/memory-attacks.test.ts',
];

/**
 * Files that repeat tests with several programs or callers. `bin/test` runs only a part of each file. `bin/test-long` runs the whole
 * file: it sets TEST_LONG=1 (`test/support/long.ts`) or the variable of the file.
 */
export const filesInPart: readonly string[] = [
  // With each of the two built-in harnesses, `bin/test` runs half of the tests, because the tests in `packages/agent` test each
  // harness alone. With an ACP harness, it runs only the tests about decisions and sessions that `driver.approvals.test.ts` and
  // `run-saved-workspace.test.ts` do not contain.
  'test/interactive-runs.test.ts',
  'test/model-runs.test.ts',
  // `bin/test` upgrades from one older version, `bin/test-long` also from the oldest one.
  'test/upgrade.test.ts',
  // `bin/test` starts two trees of runs on one slot, `bin/test-long` starts three.
  'test/children.test.ts',
  // `bin/test` tests one of three generated clients, because `published-client-python.test.ts` and `schemathesis.test.ts` test the
  // same OpenAPI document and answers.
  'test/runs.test.ts',
  // Of the callers that a route accepts, `bin/test` leaves some out: it tests the weakest caller of each kind, and
  // `permission.test.ts` tests the order of the roles.
  'packages/service/src/edges/http/server/access-table.test.ts',
  // `bin/test` sends a third of the wrong bodies and half of the wrong parameters of each route. The choice differs from route to
  // route.
  'packages/service/src/edges/http/server/plain-faults.test.ts',
  // `bin/test` makes fewer queries with each filter.
  'test/list-plans.test.ts',
  // `bin/test` tests one operation of 15, because `answers.ts` compares the answers of all tests with the same OpenAPI document.
  'test/schemathesis.test.ts',
  // `bin/test` kills fewer programs at random moments. All of these files kill programs at random moments.
  'test/adoption.test.ts',
  'test/chaos.test.ts',
  'test/killed-parents.test.ts',
  'test/crash-database.test.ts',
  'test/live-streams.test.ts',
  // `bin/test` tests two screens. `dashboard.test.ts` tests some of the other screens.
  'test/dashboard/screens.test.ts',
  // `bin/test` tests links between teams, and `bin/test-long` also notifications, sign-in by invitation, lost connections and the first steps.
  'test/dashboard/frame.test.ts',
  // `bin/test` opens no list with several hundred rows, replays nothing, and pastes no payload.
  'test/dashboard/deliveries.test.ts',
  // `bin/test` attacks with files and artifacts. `dashboard.test.ts` attacks with texts, and `access-table.test.ts` as a viewer.
  'test/dashboard/hostile.test.ts',
  // `bin/test` filters runs, saves views and reads the inbox, but changes no selected runs.
  'test/dashboard/runs-list.test.ts',
  // `bin/test` presses the keys for previews, undo and approvals, but not each key of each screen.
  'test/dashboard/keyboard.test.ts',
  // `bin/test` tests the main parts of the page of a run.
  'test/dashboard/run.test.ts',
  // `bin/test` unpacks no file of nine gigabytes.
  'packages/agent/src/run-setup-secrets.test.ts',
  // `bin/test` starts services only in sandboxes of bubblewrap.
  'test/services.test.ts',
  // `bin/test` links the installed packages instead of an installation by npm.
  'test/newcomer.test.ts',
];

/**
 * Returns the database tests that `bin/test` runs on a PostgreSQL server: the tests of `platform/store`, the files in
 * `databaseSubjects`, and every third of the other files. `bin/test-long` runs all of them. In both cases, one of the tests prepares
 * every statement of the service on the server.
 */
export function sliceForServer(database: readonly string[]): string[] {
  const always = (file: string) =>
    file.startsWith(`${serviceFolder}src/platform/store/`) || databaseSubjects.includes(file);
  const others = database.filter((file) => !always(file));
  return [...database.filter(always), ...others.filter((_, index) => index % 3 === 0)];
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
