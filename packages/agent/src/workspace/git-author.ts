import { dirname, join } from 'node:path';
import type { TaskAuthor } from '@runyard/contract/agent/agent-protocol';
import { fs } from '../builtin-modules.ts';

/**
 * The system configuration files of git on the machine. Git reads the run's own file in place of these files, so the run's file includes
 * them. Git skips included files that do not exist.
 */
const ofMachine = ['/etc/gitconfig', '/usr/local/etc/gitconfig'];

/**
 * Quotes a value for a configuration file of git (git-config, "Syntax"). Removes control characters, because git refuses them in the name
 * of an author.
 */
const quoted = (value: string): string =>
  `"${value
    .replaceAll(/[\p{Cc}<>\s]+/gu, ' ')
    .trim()
    .replaceAll(/["\\]/g, '\\$&')}"`;

/**
 * Writes the author into a configuration file next to the agent's socket, so that the file is not saved with the workspace. Returns the
 * environment variable with the path of the file. Git reads this file as its system configuration, so settings of a repository and of the
 * home have priority.
 */
export function nameGitAuthor({ name, email }: TaskAuthor, socketPath: string): Record<string, string> {
  const file = join(dirname(socketPath), 'gitconfig');
  const includes = ofMachine.map((path) => `\tpath = ${path}\n`).join('');
  fs.writeFileSync(file, `[user]\n\tname = ${quoted(name)}\n\temail = ${quoted(email)}\n[include]\n${includes}`);
  return { GIT_CONFIG_SYSTEM: file };
}
