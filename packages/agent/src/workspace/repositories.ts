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

/** What git prints when the other end, not the request, was at fault. */
const passing =
  /Could not resolve|Connection refused|Connection reset|timed out|early EOF|RPC failed|unexpected disconnect|error: (?:408|429|5\d\d)|Failed to connect/i;

/** Clones the run's repositories into folders of the workspace, through the service's gateway, which holds the credential. */
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

/** Two repositories of the same name go to `owner-repo`. */
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
  await options.step('clone', `${owner}/${repo}`, async (told) => {
    const name = `https://github.com/${owner}/${repo}.git`;
    const target = join(workspace, folder);
    for (let attempt = 1; ; attempt++) {
      const result = await runCommand({
        argv: ['git', 'clone', '--quiet', '--depth', '1', '--no-tags', '--', name, target],
        cwd: workspace,
        env: { ...options.env, ...gitEnvironment(root, gateway_path, name, connection.token) },
        signal,
      });
      signal.throwIfAborted();
      told.exit_code = result.exitCode;
      if (result.exitCode === 0) return await markBase(target, options);
      const output = lastPart(result.output.replaceAll(connection.token, '[run token]'), maxSetupOutputBytes);
      if (attempt < tries && passing.test(output)) {
        await rm(target, { recursive: true, force: true });
        await delay(backoffMs({ firstMs: firstRetryMs, longestMs: 10_000 }, attempt), signal);
        continue;
      }
      told.output_tail = output;
      throw new SetupFailure(
        `Cloning ${owner}/${repo} failed: git exited with code ${result.exitCode} after ${attempt} ${attempt === 1 ? 'try' : 'tries'}.\n${output.trim()}\nCheck that the repository exists and that the service's credential for the code host may read it.`,
      );
    }
  });
}

/** The commit that was cloned, whatever becomes of branches: what the run changed is measured against it. */
async function markBase(target: string, { env, signal }: CloneOptions): Promise<void> {
  await runCommand({ argv: ['git', 'update-ref', baseRef, 'HEAD'], cwd: target, env, signal });
}

/**
 * The name that git writes into `.git/config` is the repository's public one; where it really goes and the run token are
 * told by environment only, so that neither is in an argument list or on disk. The header is bound to the gateway's URL:
 * git does not send it anywhere else, redirects included.
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
