import { tmpdir } from 'node:os';
import { trustAuthorities } from '@runyard/system/trust-authorities';
import { parseRunArguments } from './arguments.ts';
import { grantedSecrets, redactingClient, redactStderr } from './granted-secrets/granted-secrets.ts';
import { takeRunToken } from './run-token.ts';
import { type ServiceClient, serviceClient } from './service/client.ts';
import { connectToService } from './service/connection.ts';
import { isSeparateSandbox, openRunFolders, type RunFolders } from './workspace/run-folders.ts';

/**
 * Runs the program inside the sandbox. `agent run …` runs one execution; `harness-support …` reports the end of that execution for the
 * worker that started the agent; `report-artifact …`, `child-run …`, `pull-request …` and `github-answer …` are commands for programs in the sandbox. Each
 * command loads only the modules that it needs.
 */
async function main(argv: readonly string[]): Promise<number> {
  const [command, ...rest] = argv[0] === 'agent' ? argv.slice(1) : argv;
  switch (command) {
    case 'run':
      return await run(rest, takeRunToken(process.env));
    case 'wait':
      return await runWhatComes(rest);
    case 'harness-support': {
      const { harnessSupportCommand } = await import('./sandbox-commands/harness-support.ts');
      return await harnessSupportCommand(rest, process.env, takeRunToken(process.env));
    }
    case 'report-artifact': {
      if (rest[0] === 'handoff') {
        const { handoffCommand } = await import('./sandbox-commands/handoff.ts');
        return await handoffCommand(rest.slice(1), process.env);
      }
      const { reportArtifactCommand } = await import('./sandbox-commands/report-artifact.ts');
      return await reportArtifactCommand(rest, process.env);
    }
    case 'pull-request': {
      const { pullRequestCommand } = await import('./sandbox-commands/pull-request.ts');
      return await pullRequestCommand(rest, process.env);
    }
    case 'child-run': {
      const { childRunCommand } = await import('./sandbox-commands/child-run.ts');
      return await childRunCommand(rest, process.env, process.stdin);
    }
    case 'github-answer': {
      const { githubAnswerCommand } = await import('./sandbox-commands/github-answer.ts');
      return await githubAnswerCommand(rest, process.env, process.stdin);
    }
    case 'run-server': {
      const { runServerCommand } = await import('./sandbox-commands/run-server.ts');
      return await runServerCommand(rest, process.env, process.stdin, process.stdout);
    }
    case 'mcp-server': {
      const { mcpServerCommand } = await import('./sandbox-commands/mcp-server.ts');
      return await mcpServerCommand(rest);
    }
    default:
      process.stderr.write(
        'Usage: agent run --task-id ID --server-root-url URL [flags of the worker protocol]\n       agent harness-support report-shutdown\n       agent report-artifact PATH\n       agent child-run start|await|list|cancel|message\n       agent pull-request [--title TEXT]\n       agent github-answer TOOL JSON\n',
      );
      return 2;
  }
}

/**
 * Variables that the processes of the run must not inherit. These variables are only for the agent: they define its connection to the
 * service and its start options.
 */
const ownVariables = [
  'RUNYARD_RUN_TOKEN',
  'WARP_API_KEY',
  'RUNYARD_RUN_TOKEN_FD',
  'RUNYARD_RELAY_SOCKET',
  'RUNYARD_EGRESS_SOCKET',
  'RUNYARD_RUN_FOLDERS',
  'RUNYARD_SEPARATE_SANDBOX',
  'RUNYARD_AGENT_HOME',
  'RUNYARD_CA_CERTIFICATES',
  'NODE_OPTIONS',
] as const;

/** Waits until the worker assigns a run to this agent, and runs it. The argument of the command is the URL of the service. */
async function runWhatComes([serverRoot = '']: readonly string[]): Promise<number> {
  const { waitForRun } = await import('./waiting/wait.ts');
  const givenRun = await waitForRun(process.env, serverRoot);
  if (givenRun === undefined) return 0;
  Object.assign(process.env, givenRun.env);
  // Put the run's arguments into the process title, so that a list of the machine's processes shows the run of each agent.
  process.title = givenRun.args.slice(0, 4).join(' ');
  const [, , ...argv] = givenRun.args;
  return await run(argv, givenRun.runToken);
}

async function run(argv: readonly string[], token: string): Promise<number> {
  const variables = { ...process.env };
  for (const name of ownVariables) delete process.env[name];
  const parsed = parseRunArguments(argv, process.env);
  if (!parsed.ok || token === '') {
    process.stderr.write(`agent: ${parsed.ok ? 'RUNYARD_RUN_TOKEN is missing' : parsed.message}\n`);
    return 2;
  }
  const { taskId, serverRoot, unknown, stopWithParent, missingImage } = parsed.arguments;
  for (const flag of unknown) process.stderr.write(`agent: warning: unknown flag ${flag} is ignored\n`);

  if (variables.RUNYARD_CA_CERTIFICATES) trustAuthorities(variables.RUNYARD_CA_CERTIFICATES.split('\n\n'));
  const unredacted = serviceClient({
    connection: connectToService({ serverRoot, relaySocket: variables.RUNYARD_RELAY_SOCKET || undefined, token }),
  });

  if (missingImage !== undefined) {
    const message = `The environment of the run has the docker_image ${missingImage}, and this worker runs agents as programs of its machine. Name a worker that runs containers in config.worker_host, or an environment without an image.`;
    return await reportFault({ code: 'environment_setup_failed', message }, unredacted);
  }

  // Request the task before loading the other modules. The service can then prepare the answer while the modules are loaded.
  const secrets = grantedSecrets(tmpdir());
  const task = unredacted.resolvePrompt().then((resolved) => {
    secrets.begin(resolved);
    return resolved;
  });
  task.catch(() => {});
  const client = redactingClient(unredacted, secrets);
  redactStderr(secrets);
  await new Promise(setImmediate);
  const { runAgent } = await import('./run.ts');

  const crashed = Promise.withResolvers<never>();
  process.on('uncaughtException', crashed.reject);
  process.on('unhandledRejection', crashed.reject);
  let folders: RunFolders | undefined;
  try {
    folders = openRunFolders({ cwd: process.cwd(), runId: taskId, env: variables, temporaryFolder: tmpdir() });
    process.chdir(folders.workspace);
    const ended = runAgent({
      client,
      task,
      secrets,
      workspace: folders.workspace,
      ownFolders: folders.own,
      isSeparate: isSeparateSandbox(variables),
      env: { ...process.env, HOME: folders.home },
      egressSocket: variables.RUNYARD_EGRESS_SOCKET || undefined,
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
    secrets.remove();
    folders?.remove();
  }
}

/** Calls `then` when standard input closes, because this means that the parent process has exited. */
function onParentGone(then: () => void): void {
  process.stdin.on('end', then).on('error', then).resume();
}

/** Reports a fault of the agent itself to the service, if the service answers within a few seconds. Returns the exit code. */
async function reportCrash(error: unknown, client: ServiceClient): Promise<number> {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`agent: ${text}\n`);
  const message = `The agent program failed: ${error instanceof Error ? error.message : String(error)}. This is a fault of Runyard; the worker's log has the details. Run again.`;
  return await reportFault({ code: 'agent_process_failed', message }, client);
}

/** Reports the reason why the agent cannot run this task, if the service answers within a few seconds. Returns the exit code. */
async function reportFault(
  error: { readonly code: 'agent_process_failed' | 'environment_setup_failed'; readonly message: string },
  client: ServiceClient,
): Promise<number> {
  const signal = AbortSignal.timeout(5_000);
  try {
    await client.finishTask({ success: false, summary: error.message, error }, { signal });
  } catch {
    // Ignore that the service does not answer, because the worker sees the exit code.
  }
  return 1;
}

// If the program ends although its promise never settled, exit with Node's code for this case (nodejs.org/api/process.html#exit-codes).
process.exitCode = 13;
// Exit without waiting for idle connections and background pipes, because all reports have been sent.
void main(process.argv.slice(2)).then((code) => process.exit(code));
