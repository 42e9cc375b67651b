import { existsSync } from 'node:fs';
import path from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const root = path.resolve(import.meta.dirname, '../..');

/**
 * The slowest test files, beginning with the slowest. They start first. Otherwise one slow file could still run at the end, when all
 * others have ended. bin/test prints the slowest files. Add a file to this list if it takes more than 20 seconds and no smaller test
 * checks the same behaviour.
 */
const longest = [
  'test/interactive-runs.test.ts',
  'test/published-client-python.test.ts',
  'test/runs.test.ts',
  'test/guide.test.ts',
  'test/model-runs.test.ts',
  'test/prepared-workspaces.test.ts',
  'test/fresh-checks.test.ts',
  'test/dashboard/dashboard.test.ts',
  'test/worker-alone.test.ts',
  'test/backup.test.ts',
  'test/list-plans.test.ts',
  'test/command-line.test.ts',
  'test/newcomer.test.ts',
  'packages/service/src/edges/http/server/access-table.test.ts',
  'packages/worker/src/sandboxes/kubernetes/kubernetes.test.ts',
  'test/up-and-down.test.ts',
  'test/container-runs.test.ts',
  'test/children.test.ts',
  'test/chaos.test.ts',
];

for (const file of longest)
  if (!existsSync(path.join(root, file))) throw new Error(`longest-first.ts names ${file}, which does not exist`);

/** Returns the rank of a file. The file with rank 0 starts first; files with the same rank start in vitest's order. */
function rankOf(file: string): number {
  const index = longest.indexOf(file);
  if (index >= 0) return index;
  // The last ones: Vitest ends a process before a file of another project, and the next process would load all modules again.
  if (file.startsWith('packages/dashboard/')) return longest.length + 2;
  // Tests of whole programs take longer than tests beside the sources.
  return file.startsWith('test/') ? longest.length : longest.length + 1;
}

/**
 * Sorts the test files: first the slowest files, then other tests of whole programs, then all others, and at last those of the dashboard.
 * Keeps vitest's order in a group.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => rankOf(path.relative(root, moduleId));
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
