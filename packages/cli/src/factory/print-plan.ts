/** Prints plans of definitions, and their faults. */
import path from 'node:path';
import type { ApplyDefinitionResponse } from '@runyard/contract/factory-definitions';
import type { Context } from '../context.ts';
import { Failure } from '../failure.ts';
import { harmlessLine } from '../live/harmless.ts';
import { planLines } from './plan-lines.ts';

/** A fault as the service answers it. */
export interface AnsweredFault {
  readonly path: string;
  readonly line?: number | undefined;
  readonly column?: number | undefined;
  readonly message: string;
}

/** Prints a line for each fault. `folder`: of the files, in front of their paths. Returns what to throw. */
export function printFaults(context: Context, folder: string, errors: readonly AnsweredFault[] = []): Failure {
  for (const { path: file, line = 1, column = 1, message } of errors)
    context.out(`${harmlessLine(`${path.join(folder, file)}:${line}:${column}: ${message}`, 1_000)}\n`);
  return new Failure(
    `the service found ${errors.length === 1 ? 'a fault' : `${errors.length} faults`} in the definition`,
  );
}

type Plan = Pick<ApplyDefinitionResponse, 'changes' | 'drift' | 'notices'> & { readonly version?: number | undefined };

/** Prints what a definition changes. `folder`: of the files, in front of their paths. */
export function showPlan(context: Context, folder: string, { version = 0, changes, drift, notices }: Plan): void {
  for (const { file, line, column, message } of notices)
    context.report(harmlessLine(`${path.join(folder, file)}:${line}:${column}: notice: ${message}`, 1_000));
  for (const line of planLines(changes)) context.out(`${line}\n`);
  if (drift.length > 0) context.out('changed without files, and taken back:\n');
  for (const line of planLines(drift)) context.out(`${line}\n`);
  if (version > 0 && changes.length + drift.length === 0) context.out('nothing changes\n');
}
