import path from 'node:path';
import type { Command } from 'commander';
import { type Context, processContext, programKey, requireApiKey, requireOrigin } from '../../context/context.ts';
import { ensureSandboxTool } from '../../machine/sandbox-tool.ts';
import { supervise } from '../../supervise/supervise.ts';
import { watchConnection } from '../../supervise/watch-connection.ts';

/** Starts only a worker, which connects to the service at RUNYARD_BASE_URL with RUNYARD_API_KEY. Returns when the worker has ended. */
async function workerOnly(context: Context): Promise<void> {
  const origin = requireOrigin(context);
  const key = requireApiKey(context, programKey(context));
  await ensureSandboxTool(context.settings, context.env, context.report);
  let unwatch = () => {};
  await supervise({
    mode: 'foreground',
    settings: { ...context.settings, RUNYARD_BASE_URL: origin, RUNYARD_API_KEY: key },
    env: { ...context.env, RUNYARD_API_KEY: key },
    folder: context.folder,
    service: false,
    worker: true,
    report: context.report,
    onReady: () => {
      context.report(
        `a worker for ${origin} runs; logs in ${context.folder.logs}. Ctrl-C ends it with its runs; SIGTERM ${context.settings.RUNYARD_ADOPT_SECONDS === 0 ? 'lets its runs finish first' : 'leaves its runs to the next worker'}`,
      );
      unwatch = watchConnection(path.join(context.folder.logs, 'worker.log'), context.report);
    },
  }).finally(() => unwatch());
  context.report('stopped');
}

/** Declares the command `worker`. */
export function declareWorker(command: Command): void {
  command.action(() => workerOnly(processContext()));
}
