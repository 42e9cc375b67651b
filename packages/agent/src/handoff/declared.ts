import { basename, dirname, join, relative, resolve } from 'node:path';
import { fs } from '../builtin-modules.ts';

/** Files as the agent keeps them for the handoff, or why not; then none of them is. */
export type HandoffResult = { ok: true; files: string[] } | { ok: false; message: string };

/** What the agent wants to hand to whoever goes on elsewhere. */
export interface DeclaredFiles {
  /** Adds files of the workspace; what is in them at the end of the turn counts. */
  declare(paths: readonly string[], cwd: string): Promise<HandoffResult>;
  /** Absolute paths, in the order in which they were declared. */
  list(): readonly string[];
}

export function declaredFiles(workspace: string, maxFiles: number): DeclaredFiles {
  const declared = new Set<string>();
  return {
    list: () => [...declared],
    async declare(paths, cwd) {
      if (paths.length === 0) return { ok: false, message: 'no file was named' };
      const found: string[] = [];
      for (const path of paths) {
        const place = await fileOfWorkspace(workspace, resolve(cwd, path));
        if (typeof place !== 'string') return { ok: false, message: `${path} ${place.problem}` };
        found.push(place);
      }
      const together = new Set([...declared, ...found]);
      if (together.size > maxFiles) return { ok: false, message: `at most ${maxFiles} files can be handed off` };
      for (const place of found) declared.add(place);
      return { ok: true, files: found.map((place) => relative(workspace, place)) };
    },
  };
}

/** Its place with links of its folders followed, or what is wrong with it: the file itself must be no link, and in the workspace. */
export async function fileOfWorkspace(workspace: string, path: string): Promise<string | { problem: string }> {
  const { lstat, realpath } = fs.promises;
  try {
    const place = join(await realpath(dirname(path)), basename(path));
    const inside = relative(await realpath(workspace), place);
    if (inside === '' || inside === '..' || inside.startsWith('../')) return { problem: 'is not in the workspace' };
    if (!(await lstat(place)).isFile()) return { problem: 'is not a regular file' };
    return place;
  } catch (error) {
    return { problem: (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'does not exist' : 'cannot be read' };
  }
}
