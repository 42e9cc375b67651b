import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { runCommand } from '../commands/run-command.ts';
import { SetupFailure } from '../setup-failure.ts';
import { publicUrl } from './git-proxy.ts';

/** Matches the files that Git LFS replaces by pointers: .gitattributes gives them the filter `lfs`. */
const lfsFiles = ':(attr:filter=lfs)';

export interface AfterClone {
  /** Folder of the clone. */
  readonly target: string;
  /** The environment of git, with the variables of the git proxy. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
}

/**
 * Replaces the pointers of Git LFS in a clone by the files. Returns a text for the setup step that says why pointers are left; undefined
 * if none are left. Throws a `SetupFailure` if the repository must have the files (`lfs: true`).
 */
export async function fetchLfsFiles(
  repository: AgentTask['repositories'][number],
  { target, env, signal }: AfterClone,
): Promise<string | undefined> {
  const git = async (...args: string[]) => {
    const done = await runCommand({ argv: ['git', ...args], cwd: target, env, signal });
    signal.throwIfAborted();
    return done;
  };
  const { exitCode, output, leftOut } = await git('ls-files', '--', lfsFiles);
  const count = exitCode === 0 ? leftOut.lines + output.split('\n').filter((line) => line !== '').length : 0;
  if (count === 0) return undefined;
  const left = (why: string): string => {
    const text = `${count} ${count === 1 ? 'file' : 'files'} of Git LFS ${count === 1 ? 'is a pointer' : 'are pointers'}: ${why}`;
    if (repository.lfs === true) throw new SetupFailure(`${repository.owner}/${repository.repo}: ${text}.`);
    return text;
  };
  if (repository.lfs === false) return left('`lfs` of the repository is false');
  if ((await git('lfs', 'version')).exitCode !== 0)
    return left("the sandbox has no git-lfs; install it on the worker's machine, or in the image of the environment");
  // The file .lfsconfig of a repository could name another server.
  const server = `${publicUrl(repository)}/info/lfs`;
  for (const [name, value] of [
    ['lfs.url', server],
    ['lfs.pushurl', server],
    ['lfs.locksverify', 'false'],
  ] as const)
    await git('config', '--local', name, value);
  // With its filter and hooks, Git LFS also uploads files with a push.
  const installed = await git('lfs', 'install', '--local');
  const pulled = installed.exitCode === 0 ? await git('lfs', 'pull') : installed;
  if (pulled.exitCode === 0) return undefined;
  await git('lfs', 'uninstall', '--local');
  return left(`git lfs exited with code ${pulled.exitCode}. ${pulled.output.trim().slice(-500)}`);
}
