/** Test support: runs git in the same way as a run. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Runs git with its own environment variables and a run token. `runToken`: null means without a token. Returns the exit code and the output. */
export async function runGit(
  { runToken, home, cwd = home }: { readonly runToken: string | null; readonly home: string; readonly cwd?: string },
  args: readonly string[],
): Promise<{ code: number; text: string }> {
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: home,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_AUTHOR_NAME: 'a',
    GIT_AUTHOR_EMAIL: 'a@example.invalid',
    GIT_COMMITTER_NAME: 'a',
    GIT_COMMITTER_EMAIL: 'a@example.invalid',
    GIT_CONFIG_COUNT: runToken === null ? '1' : '2',
    // Turn off the automatic maintenance, because git would start it as a separate program at each commit and each clone.
    GIT_CONFIG_KEY_0: 'maintenance.auto',
    GIT_CONFIG_VALUE_0: 'false',
    GIT_CONFIG_KEY_1: 'http.extraHeader',
    GIT_CONFIG_VALUE_1: `Authorization: Bearer ${runToken}`,
  };
  const done = await run('git', args, { cwd, env }).catch((error) => error);
  return { code: done.code ?? 0, text: `${done.stdout}${done.stderr}` };
}
