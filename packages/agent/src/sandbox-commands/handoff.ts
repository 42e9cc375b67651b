import type { HandoffResult } from '../handoff/handoff-files.ts';
import { askAgent } from './ask-agent.ts';

/** Runs the command `report-artifact handoff FILE…` of the sandbox. Returns its exit code. */
export async function handoffCommand(paths: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const fail = (message: string) => {
    process.stderr.write(`report-artifact handoff: ${message}\n`);
    return 1;
  };
  if (paths.length === 0) {
    process.stderr.write(
      'Usage: report-artifact handoff FILE…\nStores files of the workspace, in their state at the end of the turn, for people who continue the work elsewhere.\n',
    );
    return 1;
  }
  const socket = env.RUNYARD_AGENT_SOCKET;
  if (!socket) return fail('RUNYARD_AGENT_SOCKET is not set: this command works only inside a run');
  try {
    const result = await askAgent<HandoffResult>(socket, { handoff: paths, cwd: process.cwd() });
    if (!result.ok) return fail(result.message);
    process.stdout.write(result.files.map((file) => `${file}\n`).join(''));
    return 0;
  } catch (error) {
    return fail(`the agent did not answer: ${(error as Error).message}`);
  }
}
