import { existsSync } from 'node:fs';
import path from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const root = path.resolve(import.meta.dirname, '../..');

/**
 * The files that take longest, the longest first. They start first, so that no file runs alone at the end. bin/test names the slowest
 * files: add one of more than 20 seconds here, if a smaller one does not show the same.
 */
const longest = [
  'test/schemathesis.test.ts',
  'test/interactive-runs.test.ts',
  'test/adoption.test.ts',
  'test/killed-parents.test.ts',
  'test/command-line.test.ts',
  'test/up-and-down.test.ts',
  'test/crash-database.test.ts',
  'test/list-plans.test.ts',
  'test/export-import.test.ts',
  'test/children.test.ts',
  'test/guide.test.ts',
  'test/runs.test.ts',
  'test/model-runs.test.ts',
  'test/model-clients.test.ts',
  'test/worker-alone.test.ts',
  'test/newcomer.test.ts',
  'test/chaos.test.ts',
  'test/command-line-watch.test.ts',
  'test/budget-and-key-crashes.test.ts',
  'packages/service/src/edges/http/server/access-table.test.ts',
];

for (const file of longest)
  if (!existsSync(path.join(root, file))) throw new Error(`longest-first.ts names ${file}, which does not exist`);

/** Returns 0 for the file to start first; files with the same number are equal. */
function rankOf(file: string): number {
  const index = longest.indexOf(file);
  if (index >= 0) return index;
  // Tests of whole programs take longer than the others.
  return file.startsWith('test/') ? longest.length : longest.length + 1;
}

/** Sorts the test files: first the longest, then those of whole programs; vitest's own order within each group. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => rankOf(path.relative(root, moduleId));
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
