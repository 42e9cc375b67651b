import { tmpdir } from 'node:os';
import { parseRunArguments } from './arguments.ts';
import { takeRunToken } from './run-token.ts';
import { type ServiceClient, serviceClient } from './service/client.ts';
import { connectToService } from './service/connection.ts';
import { openRunFolders, type RunFolders } from './workspace/run-folders.ts';

/**
 * The program inside the sandbox: `agent run …` plays one execution, `report-artifact …` and `child-run …` are what commands in
 * the sandbox call. What one of them does not need is not loaded for it.
 */
async function main(argv: readonly string[]): Promise<number> {
  const [command, ...rest] = argv[0] === 'agent' ? argv.slice(1) : argv;
  switch (command) {
    case 'run':
      return await run(rest);
    case 'report-artifact': {
      if (rest[0] === 'handoff') {
        const { handoffCommand } = await import('./sandbox-commands/handoff.ts');
        return await handoffCommand(rest.slice(1), process.env);
      }
      const { reportArtifactCommand } = await import('./sandbox-commands/report-artifact.ts');
      return await reportArtifactCommand(rest, process.env);
    }
    case 'child-run': {
      const { childRunCommand } = await import('./sandbox-commands/child-run.ts');
      return await childRunCommand(rest, process.env, process.stdin);
    }
    default:
      process.stderr.write(
        'Usage: agent run --task-id ID --server-root-url URL [flags of the worker protocol]\n       agent report-artifact PATH\n       agent child-run start|await|list|cancel|message\n',
      );
      return 2;
  }
}

/** Names that everything started in the run must not inherit: how to reach the service, and how the agent was started. */
const ownVariables = [
  'RUNYARD_RUN_TOKEN',
  'RUNYARD_RUN_TOKEN_FD',
  'RUNYARD_RELAY_SOCKET',
  'RUNYARD_RUN_FOLDERS',
  'RUNYARD_AGENT_HOME',
  'NODE_COMPILE_CACHE',
  'NODE_OPTIONS',
] as const;

async function run(argv: readonly string[]): Promise<number> {
  const token = takeRunToken(process.env);
  const given = { ...process.env };
  for (const name of ownVariables) delete process.env[name];
  const parsed = parseRunArguments(argv, process.env);
  if (!parsed.ok || token === '') {
    process.stderr.write(`agent: ${parsed.ok ? 'RUNYARD_RUN_TOKEN is missing' : parsed.message}\n`);
    return 2;
  }
  const { taskId, serverRoot, unknown, stopWithParent } = parsed.arguments;
  for (const flag of unknown) process.stderr.write(`agent: warning: unknown flag ${flag} is ignored\n`);

  const client = serviceClient({
    connection: connectToService({ serverRoot, relaySocket: given.RUNYARD_RELAY_SOCKET || undefined, token }),
  });

  // The service answers while the rest is loaded: the question must have left before the loading takes the processor.
  const task = client.resolvePrompt();
  task.catch(() => {});
  await new Promise(setImmediate);
  const { runAgent } = await import('./run.ts');

  const crashed = Promise.withResolvers<never>();
  process.on('uncaughtException', crashed.reject);
  process.on('unhandledRejection', crashed.reject);
  let folders: RunFolders | undefined;
  try {
    folders = openRunFolders({ cwd: process.cwd(), runId: taskId, env: given, temporaryFolder: tmpdir() });
    process.chdir(folders.workspace);
    const ended = runAgent({
      client,
      task,
      workspace: folders.workspace,
      ownFolders: folders.own,
      env: { ...process.env, HOME: folders.home },
      onStarted: (terminate) => {
        process.on('SIGTERM', terminate);
        process.on('SIGINT', terminate);
        if (stopWithParent) onParentGone(terminate);
      },
    });
    return (await Promise.race([ended, crashed.promise])).exitCode;
  } catch (error) {
    return await reportCrash(error, client);
  } finally {
    folders?.remove();
  }
}

/** Calls `then` when standard input closes: the parent holds its other end. */
function onParentGone(then: () => void): void {
  process.stdin.on('end', then).on('error', then).resume();
}

/** A fault of the agent itself is told to the service where it still listens, within a few seconds. */
async function reportCrash(error: unknown, client: ServiceClient): Promise<number> {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`agent: ${text}\n`);
  const message = `The agent program failed: ${error instanceof Error ? error.message : String(error)}. This is a fault of Runyard; the worker's log has the details. Run again.`;
  const signal = AbortSignal.timeout(5_000);
  try {
    await client.finishTask(
      { success: false, summary: message, error: { code: 'agent_process_failed', message } },
      { signal },
    );
  } catch {
    // The worker sees the exit code.
  }
  return 1;
}

// Not waiting for idle connections and background pipes: all that must be told has been told.
process.exit(await main(process.argv.slice(2)));
