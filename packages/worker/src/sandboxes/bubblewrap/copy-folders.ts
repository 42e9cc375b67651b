import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import type { FolderCopies } from '../../cache/kept-workspaces.ts';
import { usedInFolders } from '../disk/measure.ts';
import { machinePrograms } from './filesystem.ts';
import { findBubblewrap } from './find-bubblewrap.ts';

const run = promisify(execFile);
const longestMs = 600_000;
const script =
  'for name; do find "/to/$name" -mindepth 1 -delete && cp -a --reflink=auto -- "/from/$name/." "/to/$name" || exit 1; done';

/**
 * Copies folders of sandboxes. The program `cp` runs in a separate sandbox that has only the machine's programs and the folders, because a
 * process of a sandbox could replace a folder by a link to files of the machine while `cp` reads it.
 */
export const folderCopies: FolderCopies = {
  measure: (folders) => usedInFolders(folders, async () => [], AbortSignal.timeout(longestMs)),
  async copy(from, to, names) {
    const program = await findBubblewrap();
    if (program === undefined) throw new Error('bubblewrap is not installed');
    await run(
      program,
      [
        ...['--unshare-all', '--die-with-parent', '--new-session', '--cap-drop', 'ALL', ...(await machinePrograms())],
        // glibc sets modes of folders through /proc.
        ...['--proc', '/proc', '--chdir', '/'],
        ...names.flatMap((name) => ['--ro-bind', path.join(from, name), `/from/${name}`]),
        ...names.flatMap((name) => ['--bind', path.join(to, name), `/to/${name}`]),
        ...['sh', '-c', script, 'copy', ...names],
      ],
      { env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' }, timeout: longestMs, killSignal: 'SIGKILL', maxBuffer: 1 << 20 },
    );
  },
};
