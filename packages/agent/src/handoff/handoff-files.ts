import { basename, dirname, join, relative, resolve } from 'node:path';
import { fs } from '../builtin-modules.ts';

/** The paths of the handed-off files, relative to the workspace, or the reason why no file is handed off. */
export type HandoffResult = { ok: true; files: string[] } | { ok: false; message: string };

/** Files that the agent hands off to a person or an agent who continues the work outside of this sandbox. */
export interface HandoffFiles {
  /** Adds files of the workspace. Their contents are read and sent at the end of the turn. */
  add(paths: readonly string[], cwd: string): Promise<HandoffResult>;
  /** Returns absolute paths, in the order in which the files were added. */
  list(): readonly string[];
}

export function handoffFiles(workspace: string, maxFiles: number): HandoffFiles {
  const files = new Set<string>();
  return {
    list: () => [...files],
    async add(paths, cwd) {
      if (paths.length === 0) return { ok: false, message: 'no file was named' };
      const added: string[] = [];
      for (const path of paths) {
        const file = await fileOfWorkspace(workspace, resolve(cwd, path));
        if (typeof file !== 'string') return { ok: false, message: `${path} ${file.problem}` };
        added.push(file);
      }
      if (new Set([...files, ...added]).size > maxFiles)
        return { ok: false, message: `at most ${maxFiles} files can be handed off` };
      for (const file of added) files.add(file);
      return { ok: true, files: added.map((file) => relative(workspace, file)) };
    },
  };
}

/**
 * Returns the path of a regular file, with links to folders resolved, or the reason why the agent cannot hand off the file. The
 * file must be in the workspace and must not itself be a link.
 */
export async function fileOfWorkspace(workspace: string, path: string): Promise<string | { problem: string }> {
  const { lstat, realpath } = fs.promises;
  try {
    const file = join(await realpath(dirname(path)), basename(path));
    const inside = relative(await realpath(workspace), file);
    if (inside === '' || inside === '..' || inside.startsWith('../')) return { problem: 'is not in the workspace' };
    if (!(await lstat(file)).isFile()) return { problem: 'is not a regular file' };
    return file;
  } catch (error) {
    return { problem: (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'does not exist' : 'cannot be read' };
  }
}
