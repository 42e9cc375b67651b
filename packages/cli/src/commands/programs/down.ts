import { existsSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { stateOf } from '@runyard/system/process-identity';
import type { Command } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { type Claim, drainSignal, readClaim } from '../../data-folder/claim.ts';
import { readServiceFile } from '../../data-folder/service-file.ts';
import { Failure } from '../../exits/failure.ts';
import { harmlessLine } from '../../terminal/harmless.ts';
import { type LiveRuns, readLiveRuns } from './live-runs.ts';

/**
 * Maximum wait for programs that were asked to stop without waiting for runs. The worker and the service stop one after the other, and
 * together need less than this time.
 */
const patienceMs = 45_000;
const pollMs = 1_000;

interface DownOptions {
  /** Stop when the live runs have ended. */
  readonly wait?: true;
  /** End the live runs. */
  readonly force?: true;
}

type Choice = 'wait' | 'force';

/**
 * Stops the programs that `run` or `up` started for this data folder, and returns when they have ended. If runs are live, asks the
 * person at the terminal whether to wait for the runs or to end them. A worker that was started separately first finishes its runs
 * without a time limit, unless `force` is set. @throws Failure if runs are live, and neither an option nor a person has decided
 * whether to wait for them
 */
export async function down(context: Context, options: DownOptions): Promise<void> {
  if (options.wait && options.force) throw new Failure('--wait and --force exclude each other', 2);
  const claim = readClaim(context.folder.supervisorFile);
  if (!claim) {
    await endRemains(context);
    return;
  }
  if (stateOf(claim) === 'elsewhere')
    throw new Failure('it runs in another container, which shares this data folder; stop it there');
  const programs = claim.programs ?? [];
  if (!programs.includes('service') && programs.includes('worker')) return await stopWorker(context, claim, options);

  const live = claim.origin === undefined ? noRuns : await readLiveRuns(context, claim.origin, options.force === true);
  const choice = live.count === 0 ? 'force' : await choose(context, live, options);
  if (choice === 'wait') {
    context.report(`waiting for ${runs(live)}; queued and new runs begin after the next start`);
    if (programs.includes('worker')) send(claim.pid, drainSignal);
    else await noneIsLive(context, claim);
    await gone(context, claim, Number.POSITIVE_INFINITY);
  } else await stopNow(context, claim);
  context.out('stopped\n');
  if (choice === 'force' && live.count > 0)
    context.report(
      `${runs(live)} ended: ERROR, retryable. After the next start: bin/runyard rerun ${live.first[0]?.run_id ?? 'RUN'}`,
    );
}

/**
 * If the supervisor of this data folder was killed, waits until its programs have ended. Then ends sandboxes that wait for the next
 * worker.
 */
async function endRemains({ folder, out, report }: Context): Promise<void> {
  const deadline = performance.now() + patienceMs;
  const former = readServiceFile(folder.serviceFile);
  if (former !== null) report(`the service of an earlier start (process ${former.pid}) still stops; waiting for it`);
  while (readServiceFile(folder.serviceFile) !== null) {
    if (performance.now() > deadline)
      throw new Failure(`process ${former?.pid} did not stop in ${patienceMs / 1000} s; see ${folder.logs}`);
    await sleep(25);
  }
  // Imports the worker's code only if the folder ever had a worker. Most data folders without running programs never had a worker.
  const hasWorked = existsSync(path.join(folder.path, 'worker', 'holder.json'));
  const { endSandboxes } = hasWorked ? await import('@runyard/worker/end-sandboxes') : { endSandboxes: async () => 0 };
  const ended = await endSandboxes(folder.path);
  out(
    ended === 0 || ended === undefined
      ? `nothing runs (data folder ${folder.path})\n`
      : `ended the sandboxes that an earlier worker left; no program runs now (data folder ${folder.path})\n`,
  );
}

const noRuns: LiveRuns = { count: 0, more: false, first: [] };

const runs = ({ count, more }: LiveRuns): string =>
  more ? `more than ${count} live runs` : count === 1 ? '1 live run' : `${count} live runs`;

/** Returns whether to wait for the live runs or to end them. If no option decides this, asks the person at the terminal. */
async function choose(context: Context, live: LiveRuns, options: DownOptions): Promise<Choice> {
  if (options.wait) return 'wait';
  if (options.force) return 'force';
  const list = live.first.map(
    ({ run_id, state, title }) => `  ${run_id}  ${state.padEnd(10)}  ${harmlessLine(title, 60)}`,
  );
  if (live.count > live.first.length) list.push('  …');
  const found = `there ${live.count === 1 && !live.more ? 'is' : 'are'} ${runs(live)}:\n${list.join('\n')}`;
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new Failure(
      `nothing was stopped, because ${found}\n  bin/runyard down --wait   stops when they have ended\n  bin/runyard down --force  ends them now as ERROR, retryable`,
    );
  context.report(found);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // Ctrl-C and Ctrl-D mean that the person wants to stop nothing.
  const left = new AbortController();
  terminal.on('SIGINT', () => left.abort()).on('close', () => left.abort());
  try {
    for (;;) {
      const answer = await terminal.question('[w]ait until they have ended, [e]nd them now, or stop [n]othing? ', left);
      switch (answer.trim().toLowerCase()) {
        case 'w':
        case 'wait':
          return 'wait';
        case 'e':
        case 'end':
          return 'force';
        case 'n':
        case 'nothing':
        case 'no':
        case '':
          throw new Failure('nothing was stopped');
      }
    }
  } catch (error) {
    if (left.signal.aborted) throw new Failure('nothing was stopped', 130);
    throw error;
  } finally {
    terminal.close();
  }
}

async function stopWorker(context: Context, claim: Claim, options: DownOptions): Promise<void> {
  send(claim.pid, options.force ? 'SIGINT' : drainSignal);
  if (!options.force) context.report('the worker finishes its current runs; bin/runyard down --force ends them');
  await gone(context, claim, options.force ? patienceMs : Number.POSITIVE_INFINITY);
  context.out('stopped\n');
}

async function stopNow(context: Context, claim: Claim): Promise<void> {
  send(claim.pid, 'SIGTERM');
  await gone(context, claim, patienceMs);
}

/** Is for a service whose workers run elsewhere. Waits until this service has no live runs, and then stops the service. */
async function noneIsLive(context: Context, claim: Claim): Promise<void> {
  while (claim.origin !== undefined && stateOf(claim) === 'alive') {
    if ((await readLiveRuns(context, claim.origin, false)).count === 0) break;
    await sleep(pollMs);
  }
  send(claim.pid, 'SIGTERM');
}

/** Waits until the process has ended. Kills the process after `patience` milliseconds. */
async function gone(context: Context, claim: Claim, patience: number): Promise<void> {
  const deadline = performance.now() + patience;
  while (stateOf(claim) === 'alive') {
    if (performance.now() > deadline) {
      // The programs of the killed supervisor stop by themselves, because their standard input closes.
      send(claim.pid, 'SIGKILL');
      throw new Failure(
        `process ${claim.pid} did not stop in ${patience / 1000} s and was killed; see ${context.folder.logs}`,
      );
    }
    await sleep(25);
  }
}

/** Sends the signal. Ignores a process that is already gone. */
function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EPERM')
      throw new Failure(`process ${pid} belongs to another user; stop it as that user`);
  }
}

/** Declares the command `down`. */
export function declareDown(command: Command): void {
  command
    .option('--wait', 'stop when the live runs have ended; begin no queued runs')
    .option('--force', 'end the live runs: they become ERROR and can be run again')
    .action((options) => down(processContext(), options));
}
