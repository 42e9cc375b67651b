import { signInCodeSeconds, signInFragment } from '@runyard/contract/team/browser-sessions';
import type { Command } from 'commander';
import { type Context, processContext, requireOrigin } from '../../context/context.ts';
import { runHelp } from '../../input/options.ts';
import { openPrivately, whyNoBrowser } from '../../machine/start-browser.ts';
import { connect } from '../../service/connect.ts';
import { contextAndRunId } from '../../service/run-id.ts';

/** Returns the path of the page of a run; without `runId`, of the newest run, or of the dashboard if there is no run yet. */
async function pagePath(context: Context, runId: string | undefined): Promise<string> {
  const client = connect(context);
  if (runId !== undefined) return `/runs/${(await client.getRun({ params: { runId } })).run_id}`;
  const { runs } = await client.listRuns({ query: { limit: 1, sort_by: 'created_at' } });
  const [latest] = runs;
  return latest === undefined ? '/' : `/runs/${latest.run_id}`;
}

/**
 * Opens the page of a run in the browser, with a sign-in link that works once. Without `runId`, opens the page of the newest run, or the
 * dashboard if there is no run yet. Prints the link if no browser can be started, or if `print` is set.
 */
export async function open(
  context: Context,
  runId: string | undefined,
  options: { readonly print?: true },
): Promise<void> {
  const client = connect(context);
  const page = requireOrigin(context) + (await pagePath(context, runId));
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
