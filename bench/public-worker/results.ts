/** The last result of each backend of oz-agent-worker. */
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

export interface BackendResult {
  readonly backend: string;
  /** Version of oz-agent-worker: `main.Version`, if the build has set it, else the version of its module. */
  readonly version: string;
  /** Day of the test, in UTC. */
  readonly date: string;
  /** Number of steps that passed. `failed`: 1 if the next step failed, else 0. */
  readonly passed: number;
  readonly failed: 0 | 1;
}

const file = path.join(import.meta.dirname, 'results.json');

export const readResults = async (): Promise<BackendResult[]> => JSON.parse(await readFile(file, 'utf8'));

/** Stores the result of a backend in place of its last result. `program` is the path of oz-agent-worker. */
export async function recordResult(program: string, result: Omit<BackendResult, 'version' | 'date'>): Promise<void> {
  const build = execFileSync('go', ['version', '-m', program], { encoding: 'utf8' });
  const ofModule = /^\tmod\t\S+\t(\S+)/m.exec(build)?.[1];
  const version = /-X '?main\.Version=([^"']+)/.exec(build)?.[1] ?? ofModule ?? 'unknown';
  const others = (await readResults()).filter(({ backend }) => backend !== result.backend);
  const results = [...others, { ...result, version, date: new Date().toISOString().slice(0, 10) }];
  results.sort((a, b) => a.backend.localeCompare(b.backend));
  await writeFile(file, `${JSON.stringify(results, null, 2)}\n`);
}
