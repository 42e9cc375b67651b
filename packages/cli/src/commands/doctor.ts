import type { Command } from 'commander';
import { type Context, processContext } from '../context.ts';
import { renderFindings } from '../doctor/finding.ts';
import { harmlessJson } from '../live/harmless.ts';
import { asJson } from '../options.ts';

/** Prints what was found and how to fix problems. Exit code 0 if runs can work, else 1. */
export async function doctor(context: Context, options: { readonly json?: true }): Promise<void> {
  // The checks import much of service and worker.
  const { runChecks } = await import('../doctor/checks.ts');
  const findings = await runChecks(context);
  const works = findings.every((finding) => finding.level !== 'bad');
  if (!works) process.exitCode = 1;
  if (options.json) {
    context.out(`${harmlessJson({ works, findings })}\n`);
    return;
  }
  context.out(renderFindings(findings, context.colours));
  context.out(
    works
      ? '\nA run works here: bin/runyard run examples/hello.md\n'
      : '\nNo run works here until you fix the lines with ✗.\n',
  );
}

/** Declares the command `doctor`. */
export function declareDoctor(command: Command): void {
  command.option(...asJson).action((options) => doctor(processContext(), options));
}
