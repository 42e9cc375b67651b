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

/** The variables with which git names the author and the committer, each with the variable of `git var` that holds both values. */
const identities = { GIT_AUTHOR_IDENT: 'GIT_AUTHOR', GIT_COMMITTER_IDENT: 'GIT_COMMITTER' } as const;

/**
 * Returns the variables with the author and committer that git resolves in all these folders. Some programs, such as Gemini CLI, hide the
 * configuration files of the system and the home from git, but pass these variables on. Call it after the setup, because a setup command
 * may configure another author.
 *
 * The variables have priority over all configuration files. So a `git config user.name …` that the program runs later has no effect, and
 * only `git commit --author` and variables of the command itself name another author. Returns no variables if git resolves different
 * authors in the folders, or none in a folder, because the variables would replace what the setup configured for a repository.
 */
export async function gitAuthorVariables(
  folders: readonly string[],
  { env, signal }: { env: Readonly<Record<string, string | undefined>>; signal: AbortSignal },
): Promise<Record<string, string>> {
  const { git } = await import('../handoff/git.ts');
  const options = {
    env: Object.fromEntries(Object.entries(env).flatMap(([k, v]) => (v === undefined ? [] : [[k, v]]))),
  };
  const inFolder = async (cwd: string): Promise<Record<string, string>> => {
    const variables: Record<string, string> = {};
    for (const [ident, prefix] of Object.entries(identities)) {
      // Without this option, git makes up an author from the name of the machine.
      const text = await git(['-c', 'user.useConfigOnly=true', 'var', ident], { ...options, cwd, signal });
      const [, name, email] = /^(.+) <(.+)> \d+ [+-]\d+\n$/.exec(text) ?? [];
      if (name === undefined || email === undefined) throw new Error(`git var ${ident} gave ${text}`);
      Object.assign(variables, { [`${prefix}_NAME`]: name, [`${prefix}_EMAIL`]: email });
    }
    return variables;
  };
  try {
    const [first = {}, ...further] = await Promise.all(folders.map(inFolder));
    return further.every((each) => JSON.stringify(each) === JSON.stringify(first)) ? first : {};
  } catch {
    signal.throwIfAborted();
    return {};
  }
}

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
