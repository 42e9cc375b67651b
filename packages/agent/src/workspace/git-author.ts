import { dirname, join } from 'node:path';
import type { TaskAuthor } from '@runyard/contract/agent/agent-protocol';
import { fs } from '../builtin-modules.ts';

/** Files of the machine whose place the file of the run takes. Git skips files that do not exist. */
const ofMachine = ['/etc/gitconfig', '/usr/local/etc/gitconfig'];

/** Quotes a value for a file of git (git-config, "Syntax"). Git refuses control characters in the name of an author. */
const quoted = (value: string): string =>
  `"${value
    .replaceAll(/[\p{Cc}<>\s]+/gu, ' ')
    .trim()
    .replaceAll(/["\\]/g, '\\$&')}"`;

/**
 * Makes the author known to git with a file beside the agent's socket, which is not kept with the workspace. Returns the variable that names the
 * file: git reads it as its system file, so the settings of a repository and of the home have priority.
 */
export function nameGitAuthor({ name, email }: TaskAuthor, socketPath: string): Record<string, string> {
  const file = join(dirname(socketPath), 'gitconfig');
  const includes = ofMachine.map((path) => `\tpath = ${path}\n`).join('');
  fs.writeFileSync(file, `[user]\n\tname = ${quoted(name)}\n\temail = ${quoted(email)}\n[include]\n${includes}`);
  return { GIT_CONFIG_SYSTEM: file };
}
