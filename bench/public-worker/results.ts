/** The last result of each backend of oz-agent-worker. */
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

export interface BackendResult {
  readonly backend: string;
  /** Version of the program, as Go wrote it into the program. */
  readonly version: string;
  /** Day of the test, in UTC. */
  readonly date: string;
  /** The steps that passed, and whether the step after them failed. */
  readonly passed: number;
  readonly failed: 0 | 1;
}

const file = path.join(import.meta.dirname, 'results.json');

export const readResults = async (): Promise<BackendResult[]> => JSON.parse(await readFile(file, 'utf8'));

/** Replaces the result of a backend. `program` is the path of the worker. */
export async function recordResult(program: string, result: Omit<BackendResult, 'version' | 'date'>): Promise<void> {
  const build = execFileSync('go', ['version', '-m', program], { encoding: 'utf8' });
  const version = /^\tmod\t\S+\t(\S+)/m.exec(build)?.[1] ?? 'unknown';
  const others = (await readResults()).filter(({ backend }) => backend !== result.backend);
  const results = [...others, { ...result, version, date: new Date().toISOString().slice(0, 10) }];
  results.sort((a, b) => a.backend.localeCompare(b.backend));
  await writeFile(file, `${JSON.stringify(results, null, 2)}\n`);
}
