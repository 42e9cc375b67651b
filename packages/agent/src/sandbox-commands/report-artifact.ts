import { parseArgs } from 'node:util';
import type { ArtifactSocketRequest } from '../agent-socket/socket.ts';
import type { ArtifactResult } from '../artifacts/report.ts';
import { askAgent } from './ask-agent.ts';

const usage = `Usage: report-artifact PATH [--type FILE|SCREENSHOT|PLAN] [--title TEXT] [--description TEXT] [--mime-type TYPE]
       report-artifact --type PULL_REQUEST --url URL --branch NAME
       report-artifact --type EXTERNAL_REFERENCE --url URL [--reference-type TYPE] [--title TEXT]
       report-artifact handoff FILE…
Keeps a file or a reference with the run. Prints the artifact's uid.
`;

/** Runs the command `report-artifact` of the sandbox. Returns its exit code. */
export async function reportArtifactCommand(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const tell = (message: string) => void process.stderr.write(`report-artifact: ${message}\n`);
  const fail = (message: string) => {
    tell(message);
    return 1;
  };
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(argv);
  } catch (error) {
    process.stderr.write(usage);
    return fail((error as Error).message);
  }
  const { values, positionals } = parsed;
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  if (positionals.length > 1) return fail(`one path at a time, please (got ${positionals.length})`);
  const socket = env.RUNYARD_AGENT_SOCKET;
  if (!socket) return fail('RUNYARD_AGENT_SOCKET is not set: this command works only inside a run');
  const request: ArtifactSocketRequest = {
    cwd: process.cwd(),
    artifact: {
      type: (values.type ?? (positionals.length === 0 && values.url ? 'EXTERNAL_REFERENCE' : 'FILE')).toUpperCase(),
      path: positionals[0],
      title: values.title,
      description: values.description,
      url: values.url,
      branch: values.branch,
      reference_type: values['reference-type'],
      mime_type: values['mime-type'],
    },
  };
  let result: ArtifactResult;
  try {
    result = await askAgent<ArtifactResult>(socket, request, tell);
  } catch (error) {
    return fail(`the agent did not answer: ${(error as Error).message}`);
  }
  if (!result.ok) return fail(result.message);
  process.stdout.write(`${result.artifact_uid}\n`);
  return 0;
}

function parse(argv: readonly string[]) {
  const text = { type: 'string' } as const;
  return parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      type: text,
      title: text,
      description: text,
      url: text,
      branch: text,
      'reference-type': text,
      'mime-type': text,
      help: { type: 'boolean', short: 'h' },
    },
  });
}
