import { maxSetupOutputBytes } from '@runyard/contract/limits';
import { maxMarkBytes } from '@runyard/contract/wire/left-out';
import { shorten } from '@runyard/contract/wire/shorten';
import { outputWindow } from '../commands/output-window.ts';
import { runCommand } from '../commands/run-command.ts';
import type { NetworkAccess } from '../egress/forwarder.ts';
import { allowListAdvice, lacksHost } from '../egress/missing-network.ts';
import type { SetupSteps } from '../reporting/setup-steps.ts';
import { SetupFailure } from '../setup-failure.ts';

export interface SetupCommandOptions {
  workspace: string;
  network: NetworkAccess;
  env: Readonly<Record<string, string | undefined>>;
  step: SetupSteps;
  signal: AbortSignal;
}

function adviceFor(output: string, network: NetworkAccess): string {
  if (!lacksHost(output, network))
    return "Fix the command in the environment's setup_commands, or install what it needs on the worker's machine, and run again.";
  if (network === 'allow_list') return allowListAdvice;
  return "The sandbox has no network: this command tried to reach a host. Name the host in the environment's network.allowed_hosts, or its package manager in network.presets. List repositories in the environment's github_repos, which are cloned through Runyard, attach files to the run, and install programs on the worker's machine. A worker with RUNYARD_SANDBOX=none has the network, and no protection.";
}

/** Runs an environment's setup commands one after another. Throws a `SetupFailure` when a command fails. */
export async function runSetupCommands(commands: readonly string[], options: SetupCommandOptions): Promise<void> {
  for (const [index, command] of commands.entries()) {
    await options.step('setup_command', command, async (told) => {
      const result = await runCommand({
        argv: ['sh', '-c', command],
        cwd: options.workspace,
        env: options.env,
        signal: options.signal,
      });
      options.signal.throwIfAborted();
      told.exit_code = result.exitCode;
      const tail = lastLines(result.output);
      if (tail !== '') told.output_tail = tail;
      if (result.exitCode === 0 && result.outcome === 'exited') return;
      const failure = result.outcome === 'not_started' ? 'could not be started' : `exited with code ${result.exitCode}`;
      told.error = `${failure}`;
      throw new SetupFailure(
        `Setup command ${index + 1} of ${commands.length} (${shorten(command, 200)}) ${failure}.${tail === '' ? ' It printed nothing.' : `\nEnd of its output:\n${tail.trimEnd()}`}\n${adviceFor(result.output, options.network)}`,
      );
    });
  }
}

/** Returns the end of an output. The returned text begins at the start of a line. */
function lastLines(output: string): string {
  if (Buffer.byteLength(output) <= maxSetupOutputBytes) return output;
  const window = outputWindow(0, maxSetupOutputBytes - maxMarkBytes);
  window.push(Buffer.from(output));
  return window.tailText();
}
