import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { runCommand } from '../commands/run-command.ts';
import { SetupFailure } from '../setup-failure.ts';
import { publicUrl } from './git-proxy.ts';
import type { AfterClone } from './lfs.ts';

type Repository = AgentTask['repositories'][number];

/** Returns a form of a repository's address that is the same for its HTTPS and SSH addresses. */
function plainAddress(address: string, origin?: string): string | undefined {
  const scp = /^git@([^/:]+):(.+)$/.exec(address);
  const url = URL.parse(scp === null ? address : `ssh://git@${scp[1]}/${scp[2]}`, origin);
  if (url === null || !['https:', 'http:', 'ssh:'].includes(url.protocol)) return undefined;
  return `${url.hostname}${url.pathname.replace(/\/+$/, '').replace(/\.git$/, '')}`.toLowerCase();
}

/**
 * Clones those submodules of a repository whose repositories the run may reach. Submodules of submodules are not cloned. Returns a text for
 * the setup step that names the other submodules; undefined if there are none. Throws a `SetupFailure` if git fails.
 */
export async function cloneSubmodules(
  repository: Repository,
  repositories: readonly Repository[],
  gitOptions: readonly string[],
  { target, env, signal }: AfterClone,
): Promise<string | undefined> {
  const git = async (...args: string[]) => {
    const done = await runCommand({ argv: ['git', ...gitOptions, ...args], cwd: target, env, signal });
    signal.throwIfAborted();
    return done;
  };
  const listed = await git('config', '--file', '.gitmodules', '--get-regexp', '^submodule\\..*\\.(path|url)$');
  if (listed.exitCode !== 0) return undefined;
  const modules = new Map<string, { path?: string; url?: string }>();
  for (const entry of listed.output.split('\n')) {
    const [, name, member, value] = /^submodule\.(.*)\.(path|url) (.*)$/.exec(entry) ?? [];
    if (name !== undefined && member !== undefined) modules.set(name, { ...modules.get(name), [member]: value });
  }
  const origin = publicUrl(repository);
  const left: string[] = [];
  for (const [name, { path = '', url = '' }] of modules) {
    const address = plainAddress(url, `${origin}/`);
    const found = repositories.find((each) => plainAddress(publicUrl(each)) === address);
    if (path === '') continue;
    if (address === undefined || found === undefined) {
      left.push(path);
      continue;
    }
    // The address in .gitmodules may have another form than the one for which git uses the gateway.
    const steps = [
      ['submodule', '--quiet', 'init', '--', path],
      ['config', '--local', `submodule.${name}.url`, publicUrl(found)],
      ['submodule', '--quiet', 'update', '--depth', '1', '--', path],
    ];
    for (const args of steps) {
      const { exitCode, output } = await git(...args);
      if (exitCode !== 0)
        throw new SetupFailure(
          `The submodule ${path} of ${repository.owner}/${repository.repo} cannot be cloned: git exited with code ${exitCode}.\n${output.trim().slice(-1_000)}`,
        );
    }
  }
  if (left.length === 0) return undefined;
  const named = left.slice(0, 5).join(', ') + (left.length > 5 ? ', …' : '');
  return `not cloned, because their repositories are not in github_repos of the environment: submodules ${named}`;
}
