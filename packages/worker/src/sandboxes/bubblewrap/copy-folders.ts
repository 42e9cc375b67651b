import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { FolderCopies } from '../../cache/kept-workspaces.ts';
import { usedInFolders } from '../disk/measure.ts';
import { machinePrograms } from './filesystem.ts';
import { findBubblewrap } from './find-bubblewrap.ts';

const run = promisify(execFile);
const longestMs = 600_000;

/**
 * Copies folders of sandboxes. The program `cp` runs in a separate sandbox that has only the machine's programs and the folders, because a
 * process of a sandbox could replace a folder by a link to files of the machine while `cp` reads it.
 */
export const folderCopies: FolderCopies = {
  measure: ({ workspace, home }) => usedInFolders([workspace, home], async () => [], AbortSignal.timeout(longestMs)),
  async copy(from, to) {
    const program = await findBubblewrap();
    if (program === undefined) throw new Error('bubblewrap is not installed');
    await run(
      program,
      [
        ...['--unshare-all', '--die-with-parent', '--new-session', '--cap-drop', 'ALL', ...(await machinePrograms())],
        // glibc sets modes of folders through /proc.
        ...['--proc', '/proc', '--chdir', '/'],
        ...['--ro-bind', from.workspace, '/from/workspace', '--ro-bind', from.home, '/from/home'],
        ...['--bind', to.workspace, '/to/workspace', '--bind', to.home, '/to/home'],
        ...['cp', '-a', '--reflink=auto', '--', '/from/workspace', '/from/home', '/to'],
      ],
      { env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' }, timeout: longestMs, killSignal: 'SIGKILL', maxBuffer: 1 << 20 },
    );
  },
};
