/** Which files here are benchmarks. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Names of those that report, `creates.ts` for example; the other files are their parts. */
export function benchmarks(): string[] {
  const reports = (name: string) => /^\s*report\(/m.test(readFileSync(path.join(import.meta.dirname, name), 'utf8'));
  return readdirSync(import.meta.dirname).filter((name) => name.endsWith('.ts') && reports(name));
}
