/** Test support: resources that are closed, and folders that are removed, when the test or the file that opened them ends. */
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, onTestFinished, TestRunner } from 'vitest';

/** Calls `end` after the test in progress. If no test is in progress: after all tests of the file. */
function atEnd(end: () => unknown): void {
  const hook = TestRunner.getCurrentTest() ? onTestFinished : afterAll;
  hook(async () => {
    await end();
  });
}

/**
 * Closes the resource after the test that opened it, or after all tests of the file. Call it at the top of a file, in `beforeEach` or
 * in a test, but not in `beforeAll`.
 */
export function closeAtEnd<T extends { close(): unknown } | { drop(): unknown }>(resource: T): T {
  atEnd(() => ('close' in resource ? resource.close() : resource.drop()));
  return resource;
}

/**
 * Returns the path of a new folder. The path begins with `prefix`. Removes the folder at the same time as `closeAtEnd` closes a resource.
 */
export function newFolder(prefix = path.join(tmpdir(), 'runyard-test-')): string {
  const folder = mkdtempSync(prefix);
  atEnd(() => rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 }));
  return folder;
}
