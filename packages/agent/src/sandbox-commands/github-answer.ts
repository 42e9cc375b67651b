import { text } from 'node:stream/consumers';
import type { SubmitAnswer } from '../results/run-result.ts';
import { askAgent } from './ask-agent.ts';

const usage = `Usage: github-answer TOOL JSON|-
Writes on GitHub as the App of the team, and prints the page of what was written. - reads the JSON from standard input.
TOOL: comment, review, add_labels, request_reviewers, resolve_thread, if the environment of the run allows it.
Examples: github-answer comment '{"body": "Done."}'
          github-answer review '{"comments": [{"path": "a.ts", "line": 3, "body": "Why?", "suggestion": "b()"}]}'
`;

/** Runs the command `github-answer` of the sandbox. Returns its exit code. */
export async function githubAnswerCommand(
  [tool, given, ...rest]: readonly string[],
  env: NodeJS.ProcessEnv,
  standardInput: NodeJS.ReadableStream,
): Promise<number> {
  if (tool === undefined || given === undefined || rest.length > 0) {
    process.stderr.write(usage);
    return tool === '--help' || tool === '-h' ? 0 : 2;
  }
  const fail = (message: string) => {
    process.stderr.write(`github-answer: ${message}\n`);
    return 1;
  };
  const socket = env.RUNYARD_AGENT_SOCKET;
  if (!socket) return fail('RUNYARD_AGENT_SOCKET is not set: this command works only inside a run');
  let input: unknown;
  try {
    input = JSON.parse(given === '-' ? await text(standardInput) : given);
  } catch (error) {
    return fail(`the input is not JSON: ${(error as Error).message}`);
  }
  try {
    const { ok, message } = await askAgent<SubmitAnswer>(socket, { github: { tool, input } });
    if (!ok) return fail(message);
    process.stdout.write(`${message}\n`);
    return 0;
  } catch (error) {
    return fail(`the agent did not answer: ${(error as Error).message}`);
  }
}
