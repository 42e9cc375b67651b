/** Prints plans of definitions, and their faults. */
import path from 'node:path';
import type { ApplyDefinitionResponse } from '@runyard/contract/factories/factory-definitions';
import type { Context } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { harmlessLine } from '../../terminal/harmless.ts';
import { planLines } from './plan-lines.ts';

/** Explains the exit codes of the commands that show a plan. */
export const planCodes = `
Exit code: 0 applied, or no changes; 1 faults, or not confirmed; 2 with --dry-run: there are changes;
2 without --dry-run: the files cannot be read, or there is no terminal for the question; 3 with --strict: an automation does not fire.`;

export const strict = ['--strict', 'exit with 3 if an automation does not fire; the files are still applied'] as const;

/** A fault of a definition file, as the service returns it. */
export interface AnsweredFault {
  readonly path: string;
  readonly line?: number | undefined;
  readonly column?: number | undefined;
  readonly message: string;
}

/**
 * Prints a line for each fault. Returns the error that the caller throws. `folder`: the folder of the files, which is printed before
 * their paths.
 */
export function printFaults(context: Context, folder: string, errors: readonly AnsweredFault[] = []): Failure {
  for (const { path: file, line = 1, column = 1, message } of errors)
    context.out(`${harmlessLine(`${path.join(folder, file)}:${line}:${column}: ${message}`, 1_000)}\n`);
  return new Failure(
    `the service found ${errors.length === 1 ? 'a fault' : `${errors.length} faults`} in the definition`,
  );
}

type Plan = Pick<ApplyDefinitionResponse, 'changes' | 'drift' | 'notices' | 'problems' | 'dry_run'> & {
  readonly version?: number | undefined;
};

/** Returns whether a plan changes nothing. The first definition of a factory (version 0 before it) always counts as a change. */
export const isSame = ({ version = 0, changes, drift }: Plan): boolean =>
  version > 0 && changes.length + drift.length === 0;

/**
 * Prints which parts of a definition have no effect on the service. `folder`: the folder of the files, which is printed before their
 * paths.
 */
export function showNotices(context: Context, folder: string, notices: Plan['notices']): void {
  for (const { file, line, column, message } of notices)
    context.report(harmlessLine(`${path.join(folder, file)}:${line}:${column}: notice: ${message}`, 1_000));
}

/**
 * Prints the changes of a definition, and the automations that do not fire. `folder`: the folder of the files, which is printed before
 * their paths.
 */
export function showPlan(context: Context, folder: string, plan: Plan, isDryRun = false): void {
  const { changes, drift, notices, problems } = plan;
  showNotices(context, folder, notices);
  for (const line of planLines(changes)) context.out(`${line}\n`);
  if (drift.length > 0) context.out(`changed without files, and ${isDryRun ? 'would be ' : ''}taken back:\n`);
  for (const line of planLines(drift)) context.out(`${line}\n`);
  if (isSame(plan)) context.out('nothing changes\n');
  for (const { automation, message } of problems)
    context.report(
      harmlessLine(`the automation ${automation} ${isDryRun ? 'would' : 'does'} not fire: ${message}`, 1_000),
    );
}

const pendingCode = 2;
const problemsCode = 3;

/**
 * Throws if the result of a plan must be visible in the exit code of the command. @throws Failure with exit code 3 if `strict` is set
 * and automations do not fire; 2 if a dry run finds changes
 */
export function throwForPlan(
  plan: Plan,
  { dryRun = false, strict = false }: { readonly dryRun?: boolean | undefined; readonly strict?: boolean | undefined },
): void {
  const { changes, drift, problems } = plan;
  const silent = new Set(problems.map(({ automation }) => automation)).size;
  if (strict && silent > 0)
    throw new Failure(
      `${silent === 1 ? 'an automation' : `${silent} automations`} ${dryRun ? 'would' : silent === 1 ? 'does' : 'do'} not fire`,
      problemsCode,
    );
  if (!dryRun || isSame(plan)) return;
  const count = changes.length + drift.length;
  throw new Failure(`${count === 1 ? '1 change' : `${count} changes`} would be applied`, pendingCode);
}
