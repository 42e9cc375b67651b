import type { Context } from '../context.ts';
import { checkDatabase } from '../doctor/database.ts';
import { type Finding, renderFindings } from '../doctor/finding.ts';
import { checkHarnesses } from '../doctor/harnesses.ts';
import { checkDataFolder, checkGit, checkListening, checkNode } from '../doctor/machine.ts';
import { checkModels } from '../doctor/models.ts';
import { checkContentPolicy, checkModelCatalogue } from '../doctor/operator-files.ts';
import { checkSandbox } from '../doctor/sandbox.ts';
import { checkWaitingSandboxes } from '../doctor/waiting-sandboxes.ts';
import { harmlessJson } from '../live/harmless.ts';

/** Prints what was found and how to fix problems. Exit code 0 if runs can work, else 1. */
export async function doctor(context: Context, options: { readonly json?: true }): Promise<void> {
  const [listening, database, sandbox, models, harnesses, catalogue, policy] = await Promise.all([
    checkListening(context),
    checkDatabase(context),
    checkSandbox(context),
    checkModels(context),
    checkHarnesses(context),
    checkModelCatalogue(context, new Date()),
    checkContentPolicy(context),
  ]);
  const findings: Finding[] = [
    checkNode(),
    database,
    checkDataFolder(context),
    listening,
    ...sandbox,
    ...checkWaitingSandboxes(context),
    ...harnesses,
    ...models,
    ...catalogue,
    ...policy,
    checkGit(context),
  ];
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
