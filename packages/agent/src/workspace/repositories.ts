import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentTask } from '@runyard/contract/agent-protocol';
import { backoffMs, delay } from '@runyard/contract/backoff';
import { maxSetupOutputBytes } from '@runyard/contract/limits';
import { lastPart } from '@runyard/contract/shorten';
import { runCommand } from '../commands/run-command.ts';
import { baseRef } from '../handoff/git-repositories.ts';
import type { SetupSteps } from '../reporting/setup-steps.ts';
import type { ServiceConnection } from '../service/connection.ts';
import { SetupFailure } from '../setup-failure.ts';
import { type RelayForwarder, startRelayForwarder } from './relay-forwarder.ts';

export interface CloneOptions {
  connection: ServiceConnection;
  workspace: string;
  env: Readonly<Record<string, string | undefined>>;
  step: SetupSteps;
  signal: AbortSignal;
  tries?: number;
  firstRetryMs?: number;
}

/** Messages of git for failures that may pass: the request itself was correct. */
const temporaryFailure =
  /Could not resolve|Connection refused|Connection reset|timed out|early EOF|RPC failed|unexpected disconnect|error: (?:408|429|5\d\d)|Failed to connect/i;

/** Clones the run's repositories into folders of the workspace, through the gateway of the service, which has the credential. */
export async function cloneRepositories(repositories: AgentTask['repositories'], options: CloneOptions): Promise<void> {
  if (repositories.length === 0) return;
  const { connection } = options;
  const forwarder =
    connection.relaySocket === undefined ? undefined : await startRelayForwarder(connection.relaySocket);
  try {
    const folders = folderNames(repositories);
    for (const [index, repository] of repositories.entries()) {
      await clone(repository, folders[index] ?? repository.repo, forwarder, options);
    }
  } finally {
    forwarder?.close();
  }
}

/** Returns a folder for each repository: its name, or `owner-repo` if the name is taken. */
function folderNames(repositories: AgentTask['repositories']): string[] {
  const lower = repositories.map(({ repo }) => repo.toLowerCase());
  return repositories.map(({ owner, repo }, index) =>
    lower.indexOf(repo.toLowerCase()) !== index || repo.toLowerCase() === 'attachments' ? `${owner}-${repo}` : repo,
  );
}

async function clone(
  { owner, repo, gateway_path }: AgentTask['repositories'][number],
  folder: string,
  forwarder: RelayForwarder | undefined,
  options: CloneOptions,
): Promise<void> {
  const { connection, workspace, signal, tries = 3, firstRetryMs = 1_000 } = options;
  const root =
    forwarder === undefined
      ? connection.serverRoot
      : forwarder.url + new URL(connection.serverRoot).pathname.replace(/\/+$/, '');
  await options.step('clone', `${owner}/${repo}`, async (result) => {
    const name = `https://github.com/${owner}/${repo}.git`;
    const target = join(workspace, folder);
    for (let attempt = 1; ; attempt++) {
      const cloned = await runCommand({
        argv: ['git', 'clone', '--quiet', '--depth', '1', '--no-tags', '--', name, target],
        cwd: workspace,
        env: { ...options.env, ...gitEnvironment(root, gateway_path, name, connection.token) },
        signal,
      });
      signal.throwIfAborted();
      result.exit_code = cloned.exitCode;
      if (cloned.exitCode === 0) return await markBase(target, options);
      const output = lastPart(cloned.output.replaceAll(connection.token, '[run token]'), maxSetupOutputBytes);
      if (attempt < tries && temporaryFailure.test(output)) {
        await rm(target, { recursive: true, force: true });
        await delay(backoffMs({ firstMs: firstRetryMs, longestMs: 10_000 }, attempt), signal);
        continue;
      }
      result.output_tail = output;
      throw new SetupFailure(
        `Cloning ${owner}/${repo} failed: git exited with code ${cloned.exitCode} after ${attempt} ${attempt === 1 ? 'try' : 'tries'}.\n${output.trim()}\nCheck the repository in the environment's github_repos, and the code host in RUNYARD_CODE_HOST_URL of the service.`,
      );
    }
  });
}

/** Marks the cloned commit with a ref. The patch of the run is made against it, also after branches have moved. */
async function markBase(target: string, { env, signal }: CloneOptions): Promise<void> {
  await runCommand({ argv: ['git', 'update-ref', baseRef, 'HEAD'], cwd: target, env, signal });
}

/**
 * Returns the variables that lead git to the gateway. Git writes the repository's public URL into `.git/config`. The gateway's URL and
 * the run token are only in the environment, never in arguments or on disk. The header is bound to the gateway's URL, so git sends it
 * nowhere else, also not after a redirect.
 */
function gitEnvironment(root: string, gatewayPath: string, name: string, token: string): Record<string, string> {
  const url = root + gatewayPath;
  const config: [string, string][] = [
    [`url.${url}.insteadOf`, name],
    [`http.${root}/.extraHeader`, `Authorization: Bearer ${token}`],
    ['http.followRedirects', 'false'],
    ['credential.helper', ''],
    ['core.hooksPath', '/dev/null'],
  ];
  return {
    GIT_TERMINAL_PROMPT: '0',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_ALLOW_PROTOCOL: 'http:https',
    GIT_CONFIG_COUNT: String(config.length),
    ...Object.fromEntries(
      config.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, value],
      ]),
    ),
  };
}
