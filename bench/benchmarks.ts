/** Lists the files of this folder that are benchmarks. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Names of the files that write a report, such as `creates.ts`; the other files are their parts. */
export function benchmarks(): string[] {
  const reports = (name: string) => /^\s*report\(/m.test(readFileSync(path.join(import.meta.dirname, name), 'utf8'));
  return readdirSync(import.meta.dirname).filter((name) => name.endsWith('.ts') && reports(name));
}
