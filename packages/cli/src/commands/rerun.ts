import { connect } from '../api.ts';
import type { Context } from '../context.ts';
import { harmlessJson } from '../live/harmless.ts';
import { resolveRunId } from '../run-id.ts';
import { requireSameSettings } from '../same-settings.ts';
import { logs } from './logs.ts';

/** Starts a new run with the prompt, configuration, attachments and metadata of another one. */
export async function rerun(
  context: Context,
  run: string,
  options: { readonly follow?: true; readonly json?: true },
): Promise<void> {
  requireSameSettings(context);
  const client = connect(context);
  const created = await client.rerunRun({ params: { runId: await resolveRunId(client, run) }, body: {} });
  if (options.follow) {
    if (!options.json) context.out(`${context.colours.bold('run')} ${created.run_id}\n`);
    await logs(context, created.run_id, { ...options, exitStatus: true });
    return;
  }
  context.out(options.json ? `${harmlessJson(created)}\n` : `${created.run_id}\n`);
  if (!options.json) context.report(`created; follow: bin/runyard logs ${created.run_id} --follow`);
}
