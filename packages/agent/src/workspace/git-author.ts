import { dirname, join } from 'node:path';
import type { TaskAuthor } from '@runyard/contract/agent/agent-protocol';
import { fs } from '../builtin-modules.ts';

/** Configuration files of the machine that the file of the run replaces. Git skips files that do not exist. */
const ofMachine = ['/etc/gitconfig', '/usr/local/etc/gitconfig'];

/** Quotes a value for a file of git (git-config, "Syntax"). Git refuses control characters in the name of an author. */
const quoted = (value: string): string =>
  `"${value
    .replaceAll(/[\p{Cc}<>\s]+/gu, ' ')
    .trim()
    .replaceAll(/["\\]/g, '\\$&')}"`;

/**
 * Gives git the author in a file next to the agent's socket, which is not saved with the workspace. Returns the variable with the path of
 * the file. Git reads it as its system file, so settings of a repository and of the home have priority.
 */
export function nameGitAuthor({ name, email }: TaskAuthor, socketPath: string): Record<string, string> {
  const file = join(dirname(socketPath), 'gitconfig');
  const includes = ofMachine.map((path) => `\tpath = ${path}\n`).join('');
  fs.writeFileSync(file, `[user]\n\tname = ${quoted(name)}\n\temail = ${quoted(email)}\n[include]\n${includes}`);
  return { GIT_CONFIG_SYSTEM: file };
}
