import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Plugin } from 'esbuild';

/** This module imports all modules that a run needs before its first command. */
const everyRun = 'waiting/wait.ts';

/** Folder with the agent's commands for programs in the sandbox. These commands should load few modules. */
const commandsFolder = 'sandbox-commands';

const namespace = 'part';

/** Returns true for the name of a module that `joinParts` made. */
export const isPart = (input: string): boolean => input.startsWith(`${namespace}:`);

/**
 * Joins the modules that every run needs into one file. Without this plugin, esbuild would write about thirty files for these modules,
 * because it puts only modules that the same parts import into one file. Each file adds half a millisecond to a start. With this plugin,
 * each part also imports all modules that every run needs. So these modules are imported by the same parts, and esbuild writes them into
 * one file.
 */
export function joinParts(entry: string): Plugin {
  const sources = path.dirname(entry);
  const common = path.join(sources, everyRun);
  return {
    name: 'join-parts',
    setup(build) {
      if (!existsSync(common)) return;
      build.onResolve({ filter: /^\./ }, async ({ path: name, kind, importer, resolveDir }) => {
        if (kind !== 'dynamic-import' || !importer.startsWith(sources)) return undefined;
        const resolved = await build.resolve(name, { resolveDir, importer, kind: 'import-statement' });
        if (resolved.path.startsWith(path.join(sources, commandsFolder))) return resolved;
        return { ...resolved, namespace };
      });
      build.onLoad({ filter: /.*/, namespace }, ({ path: part }) => ({
        contents: `import ${JSON.stringify(common)};\nexport * from ${JSON.stringify(part)};\n`,
        resolveDir: sources,
      }));
    },
  };
}
