import { delimiter, isAbsolute, relative, sep } from 'node:path';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { FinishTask } from '@runyard/contract/agent/finish-task';
import { maxCheckOutputBytes, usualCheckAttempts, usualCheckSeconds } from '@runyard/contract/limits';
import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import type { RunCheck } from '@runyard/contract/runs/checks';
import type { OwnArtifacts } from '@runyard/contract/runs/child-runs';
import { monotonicMs } from '../builtin-modules.ts';
import { outputWindow } from '../commands/output-window.ts';
import { runCommand } from '../commands/run-command.ts';
import { newId } from '../new-id.ts';
import type { ServiceClient } from '../service/client.ts';
import { workingFolder } from '../workspace/working-folder.ts';
import { type BaseCommits, checkDiff, readBaseCommits } from './check-diff.ts';
import type { FreshCheckOptions } from './fresh-check.ts';

/** The outcome of a round of checks. `failure`: a text about the first failed check, for the agent and for people. */
export interface CheckRound {
  readonly outcomes: NonNullable<FinishTask['checks']>;
  readonly failure?: string;
  /** True if the failed check may go back to the agent. */
  readonly mayTryAgain: boolean;
}

/** The checks that decide whether a turn has succeeded. */
export interface RunChecks {
  /** Remembers the commits of the cloned repositories. Called after the setup, before the harness gets its first prompt. */
  begin(): Promise<void>;
  /** Begins to count the rounds of a turn. */
  beginTurn(): void;
  /** Runs the checks in their order, up to the first that fails. Rejects when `signal` aborts. */
  run(signal: AbortSignal): Promise<CheckRound>;
}

export interface RunChecksOptions {
  readonly task: AgentTask;
  readonly workspace: string;
  /** Environment of the processes of the run, at the time of a check. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly client: Pick<ServiceClient, 'ask' | 'upload' | 'uploadSnapshot'>;
  readonly emit: (event: AgentEventBody) => void;
  /** Absolute paths of the files that the agent hands off. */
  readonly handedOff: () => readonly string[];
  /** Number of the current turn. */
  readonly turn: () => number;
  /** Called when all checks of a turn have passed on its stored changes, which must not be replaced by later ones. */
  readonly onChangesChecked: (turn: number) => Promise<void>;
}

/** How a check ended. `error`: why it failed; absent: it passed. */
export interface CheckResult {
  readonly error?: string;
  readonly exit_code?: number;
  readonly output_tail?: string;
}

/** Settings of git that stop hooks and programs of the repository from running in a check. */
const gitSettings = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
] as const;

const isBelow = (folder: string, path: string): boolean => {
  const inside = relative(folder, path);
  return inside === '' || !(inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside));
};

/**
 * Returns the environment of a check's command. `path`: the PATH from before the harness worked. Relative folders of this PATH are left out,
 * and folders below `folders`, because the harness can write there.
 */
export function checkEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  { path = '', folders }: { readonly path?: string | undefined; readonly folders: readonly (string | undefined)[] },
): Record<string, string | undefined> {
  const writable = folders.filter((folder) => folder !== undefined);
  const kept = path
    .split(delimiter)
    .filter((entry) => isAbsolute(entry) && !writable.some((folder) => isBelow(folder, entry)));
  const count = Number(env.GIT_CONFIG_COUNT ?? 0) || 0;
  const git = Object.fromEntries(
    gitSettings.flatMap(([key, value], index) => [
      [`GIT_CONFIG_KEY_${count + index}`, key],
      [`GIT_CONFIG_VALUE_${count + index}`, value],
    ]),
  );
  const { BASH_ENV: _bash, ENV: _sh, ...others } = env;
  return { ...others, ...git, GIT_CONFIG_COUNT: String(count + gitSettings.length), PATH: kept.join(delimiter) };
}

export function runChecks(options: RunChecksOptions): RunChecks {
  const { task, workspace, env, client, emit } = options;
  const { checks = [], check_attempts: maxAttempts = usualCheckAttempts } = task.agent_config;
  /** The PATH before the harness has worked. */
  const path = env.PATH;
  let base: BaseCommits = new Map();
  let round = 0;

  const freshOptions = (signal: AbortSignal): FreshCheckOptions => {
    const [turn, handedOff] = [options.turn(), options.handedOff()];
    return { client, workspace, env, base, handedOff, turn, attempt: round, signal };
  };
  let checkRunId: string | undefined;
  /** Round whose changes are stored. */
  let storedRound = 0;

  async function fresh(check: RunCheck, signal: AbortSignal): Promise<CheckResult> {
    const { runFreshCheck, storeChanges } = await import('./fresh-check.ts');
    if (storedRound !== round) await storeChanges(freshOptions(signal));
    storedRound = round;
    return await runFreshCheck(check, freshOptions(signal), (id) => {
      checkRunId = id;
    });
  }

  async function result(check: RunCheck, signal: AbortSignal): Promise<CheckResult> {
    if (check.fresh === true) return await fresh(check, signal);
    if (check.artifact !== undefined) return await checkArtifact(client, check.artifact, signal);
    if (check.diff !== undefined) return await checkDiff(check.diff, { workspace, env, signal, base });
    return await checkCommand(check, {
      cwd: workingFolder(workspace, task),
      // No harness has worked in a fresh sandbox, so the setup alone has filled its home.
      env: checkEnvironment(env, { path, folders: [workspace, task.fresh_check ? undefined : env.HOME] }),
      signal,
    });
  }

  async function runOne(check: RunCheck, signal: AbortSignal): Promise<CheckResult> {
    const event = { check_id: newId(), name: check.name, attempt: round };
    emit({ type: 'check_started', ...event });
    const began = monotonicMs();
    checkRunId = undefined;
    const ended = await result(check, signal).catch((error: unknown): CheckResult => {
      signal.throwIfAborted();
      return { error: error instanceof Error ? error.message : String(error) };
    });
    signal.throwIfAborted();
    const state = ended.error === undefined ? 'passed' : 'failed';
    const times = { duration_ms: Math.round(monotonicMs() - began) };
    const inRun = checkRunId === undefined ? {} : { check_run_id: checkRunId };
    emit({ type: 'check_finished', ...event, state, ...times, ...ended, ...inRun });
    return ended;
  }

  return {
    async begin() {
      if (checks.some(({ diff, fresh }) => diff !== undefined || fresh === true))
        base = await readBaseCommits(workspace);
    },
    beginTurn() {
      [round, storedRound] = [0, 0];
    },
    async run(signal) {
      round += 1;
      const outcomes: { name: string; passed: boolean }[] = [];
      for (const check of checks) {
        const { error, output_tail: tail = '' } = await runOne(check, signal);
        outcomes.push({ name: check.name, passed: error === undefined });
        if (error === undefined) continue;
        const output = tail === '' ? '' : `\nEnd of its output:\n${tail.trimEnd()}`;
        return {
          outcomes,
          failure: `The check ${check.name} failed: ${error}.${output}`,
          mayTryAgain: round <= maxAttempts,
        };
      }
      if (storedRound === round) await options.onChangesChecked(options.turn());
      return { outcomes, mayTryAgain: false };
    },
  };
}

/**
 * Runs the command of a check in a process group of its own. When the command has ended, kills the processes that it left, so that they do
 * not change the next check.
 */
async function checkCommand(
  { command = '', timeout_seconds: seconds = usualCheckSeconds }: RunCheck,
  options: Pick<Parameters<typeof runCommand>[0], 'cwd' | 'env' | 'signal'>,
): Promise<CheckResult> {
  const { outcome, exitCode, output } = await runCommand({
    ...options,
    argv: ['sh', '-c', command],
    timeoutMs: seconds * 1000,
    endsGroup: true,
  });
  const window = outputWindow(0, maxCheckOutputBytes - 200);
  window.push(Buffer.from(output));
  const tail = window.tailText();
  const ended = { exit_code: exitCode, ...(tail === '' ? {} : { output_tail: tail }) };
  if (outcome === 'timed_out') return { ...ended, error: `its command was killed after ${seconds} s` };
  if (outcome === 'not_started') return { ...ended, error: 'its command could not be started' };
  return exitCode === 0 ? ended : { ...ended, error: `its command exited with code ${exitCode}` };
}

/** Checks that the run has an artifact with this title, file name or type. The service knows also those of earlier sandboxes. */
async function checkArtifact(
  client: Pick<ServiceClient, 'ask'>,
  wanted: string,
  signal: AbortSignal,
): Promise<CheckResult> {
  const { artifacts } = await client.ask<OwnArtifacts>('GET', 'artifacts', { signal });
  const isThere = artifacts.some(
    (each) => each.artifact_type === wanted || each.title === wanted || each.file_name === wanted,
  );
  return isThere
    ? {}
    : { error: `the run has no artifact ${wanted}. Report it with report-artifact or the tool report_artifact` };
}
