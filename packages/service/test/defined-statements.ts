/** Test support: reads the statements that the service defines. */
import { globSync } from 'node:fs';
import path from 'node:path';
import { definedStatements, type TypedStatement } from '../src/platform/store/database/statement.ts';

/** The folder with the source files of the service. */
export const sources = path.resolve(import.meta.dirname, '../src');
/** Files that cannot be imported, because they are programs and would run. */
const programs = ['main.ts'];

/** Imports all files of the service. Returns the statements that they define, in the order of their names. */
export async function loadStatements(): Promise<TypedStatement<object>[]> {
  for (const file of globSync('**/*.ts', { cwd: sources }))
    if (!file.endsWith('.test.ts') && !programs.includes(file)) await import(path.join(sources, file));
  return definedStatements.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
