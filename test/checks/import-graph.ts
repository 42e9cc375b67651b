import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** An import of one source file by another one. Both paths are relative to the repository. */
export interface Import {
  readonly from: string;
  readonly to: string;
}

/** Matches imports of relative files and of our own packages, including imports of types. The formatter gives all imports this form. */
const importPattern = /^(?:import|export)\s[^;'"`]*?from '([^']+)';|\bimport\('([^']+)'\)|^import '([^']+)';/gm;

/** Returns the source files of all packages, without tests and fixtures. */
export function readSourceFiles(root: string): string[] {
  return globSync('packages/*/src/**/*.{ts,tsx}', { cwd: root })
    .filter((file) => !file.endsWith('.test.ts') && !file.includes('/fixtures/'))
    .sort();
}

/** Returns the test files in the source folders of the service. */
export const readServiceTests = (root: string): string[] =>
  globSync('packages/service/src/**/*.test.ts', { cwd: root }).sort();

/** Every import of our own code that these files contain. */
export function readImports(root: string, files: readonly string[]): Import[] {
  const imports: Import[] = [];
  for (const from of files) {
    const source = readFileSync(path.join(root, from), 'utf8');
    for (const [, named, dynamic, bare] of source.matchAll(importPattern)) {
      const to = resolve(root, from, named ?? dynamic ?? bare ?? '');
      if (to !== undefined) imports.push({ from, to });
    }
  }
  return imports;
}

function resolve(root: string, from: string, specifier: string): string | undefined {
  if (specifier.startsWith('.')) return path.normalize(path.join(path.dirname(from), specifier));
  const [, name, subpath = 'index'] = /^@runyard\/(\w+)(?:\/(.+))?$/.exec(specifier) ?? [];
  if (name === undefined) return undefined;
  const exported = readExports(root, name)[`./${subpath}`] ?? `./src/${subpath}.ts`;
  return path.normalize(path.join('packages', name, exported));
}

/** Returns the `exports` of the package.json of a package. Empty if the package has no package.json. */
function readExports(root: string, name: string): Readonly<Record<string, string>> {
  const file = path.join(root, 'packages', name, 'package.json');
  if (!existsSync(file)) return {};
  const { exports = {} }: { exports?: Record<string, string> } = JSON.parse(readFileSync(file, 'utf8'));
  return exports;
}

/** Returns the groups of two or more nodes that reach one another over the edges (strongly connected components, Tarjan 1972). */
export function findCycles(edges: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const path: string[] = [];
  const cycles: string[][] = [];
  const visit = (node: string): number => {
    let low = order.size;
    order.set(node, low);
    path.push(node);
    for (const next of edges.get(node) ?? []) {
      if (!order.has(next)) low = Math.min(low, visit(next));
      else if (path.includes(next)) low = Math.min(low, order.get(next) ?? low);
    }
    lowest.set(node, low);
    if (low === order.get(node)) {
      const group = path.splice(path.indexOf(node));
      if (group.length > 1) cycles.push(group.sort());
    }
    return low;
  };
  for (const node of edges.keys()) if (!order.has(node)) visit(node);
  return cycles;
}
