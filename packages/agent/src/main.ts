import { parseRunArguments } from './arguments.ts';
import { type ServiceClient, serviceClient } from './service/client.ts';
import { connectToService } from './service/connection.ts';

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

/** Names that everything started in the run must not inherit: credentials, and how to reach the service. */
const ownVariables = ['RUNYARD_RUN_TOKEN', 'RUNYARD_RELAY_SOCKET', 'NODE_COMPILE_CACHE', 'NODE_OPTIONS'] as const;

async function run(argv: readonly string[]): Promise<number> {
  const { RUNYARD_RUN_TOKEN: token, RUNYARD_RELAY_SOCKET: relaySocket } = process.env;
  for (const name of ownVariables) delete process.env[name];
  const parsed = parseRunArguments(argv, process.env);
  if (!parsed.ok || !token) {
    process.stderr.write(`agent: ${parsed.ok ? 'RUNYARD_RUN_TOKEN is missing' : parsed.message}\n`);
    return 2;
  }
  for (const flag of parsed.arguments.unknown)
    process.stderr.write(`agent: warning: unknown flag ${flag} is ignored\n`);

  const client = serviceClient({
    connection: connectToService({
      serverRoot: parsed.arguments.serverRoot,
      relaySocket: relaySocket || undefined,
      token,
    }),
  });

  // The service answers while the rest is loaded: the question must have left before the loading takes the processor.
  const task = client.resolvePrompt();
  task.catch(() => {});
  await new Promise(setImmediate);
  const { runAgent } = await import('./run.ts');

  const crashed = Promise.withResolvers<never>();
  process.on('uncaughtException', crashed.reject);
  process.on('unhandledRejection', crashed.reject);
  try {
    const ended = runAgent({
      client,
      task,
      workspace: process.cwd(),
      env: { ...process.env },
      onStarted: (terminate) => {
        process.on('SIGTERM', terminate);
        process.on('SIGINT', terminate);
      },
    });
    return (await Promise.race([ended, crashed.promise])).exitCode;
  } catch (error) {
    return await reportCrash(error, client);
  }
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
