import { signInCodeSeconds, signInFragment } from '@runyard/contract/team/browser-sessions';
import type { Command } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext, requireOrigin } from '../context.ts';
import { Failure } from '../failure.ts';
import { runHelp } from '../options.ts';
import { contextAndRunId } from '../run-id.ts';
import { openPrivately, whyNoBrowser } from '../start-browser.ts';

async function latestRunId(context: Context): Promise<string> {
  const { runs } = await connect(context).listRuns({ query: { limit: 1, sort_by: 'created_at' } });
  const [latest] = runs;
  if (!latest) throw new Failure('there is no run yet. Start one: bin/runyard run examples/hello.md');
  return latest.run_id;
}

/**
 * Opens the page of a run in the browser, with a sign-in link that works once. Without `runId`, opens the page of the newest run. Prints
 * the link if no browser can be started, or if `print` is set.
 */
export async function open(
  context: Context,
  runId: string | undefined,
  options: { readonly print?: true },
): Promise<void> {
  const client = connect(context);
  const { run_id } = await client.getRun({ params: { runId: runId ?? (await latestRunId(context)) } });
  const page = `${requireOrigin(context)}/runs/${run_id}`;
  const { code } = await client.createSignInCode();
  const link = `${page}#${signInFragment}${code}`;
  const problem = options.print ? undefined : (whyNoBrowser(context.env) ?? (await openPrivately(link)));
  if (problem === null) {
    context.out(`${page}\n`);
    context.report('the browser opens this page, signed in. If it does not: bin/runyard open --print');
    return;
  }
  context.out(`${link}\n`);
  const why = problem === undefined ? '' : `no browser was started: ${problem}. `;
  context.report(
    `${why}The link signs in one browser, within ${signInCodeSeconds} seconds. Anyone who has it acts as you: do not share it.`,
  );
}

/** Declares the command `open`. */
export function declareOpen(command: Command): void {
  command
    .argument('[run]', runHelp)
    .option('--print', 'print the one-time link instead of opening it; it signs in one browser within a minute')
    .action(async (run, options) => {
      const [context, runId] = run === undefined ? [processContext()] : await contextAndRunId(run);
      await open(context, runId, options);
    });
}
