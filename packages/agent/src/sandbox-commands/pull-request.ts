import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { parseArgs, promisify } from 'node:util';
import type { PullRequestAnswer, PullRequestSocketRequest } from '../pull-requests/open.ts';
import { askAgent } from './ask-agent.ts';

const usage = `Usage: pull-request [--title TEXT] [--body TEXT | --body-file FILE] [--base BRANCH] [--draft]
                    [--head BRANCH] [--repository OWNER/REPO]
Opens a pull request for a branch that is pushed, and prints its URL. A branch with an open pull request gets no second one.
Absent: --title and --body are those of the last commit, --base is the default branch, --head the branch of this
folder, --repository its remote origin.
`;

const text = { type: 'string' } as const;
const options = {
  title: text,
  body: text,
  'body-file': text,
  base: text,
  head: text,
  repository: text,
  draft: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** Maximum number of characters of the title. The title is cut, because the subject of a commit can be longer. */
const longestTitle = 256;

const run = promisify(execFile);

/** Returns the output of git in this folder; undefined if git failed or printed nothing. */
const git = async (...args: string[]): Promise<string | undefined> =>
  (await run('git', args).catch(() => undefined))?.stdout.trim() || undefined;

/** Returns the owner and the name from `owner/repo` or from the end of a repository URL. */
export function repositoryOf(place: string): { owner: string; repo: string } | undefined {
  const [, owner, repo] = /(?:^|[/:])([^/:\s]+)\/([^/:\s]+?)(?:\.git)?\/?$/.exec(place) ?? [];
  return owner === undefined || repo === undefined ? undefined : { owner, repo };
}

/** Runs the command `pull-request` of the sandbox. Returns its exit code. */
export async function pullRequestCommand(argv: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const fail = (message: string, code = 1) => {
    process.stderr.write(`pull-request: ${message}\n`);
    return code;
  };
  let values: ReturnType<typeof parse>;
  try {
    values = parse(argv);
  } catch (error) {
    process.stderr.write(usage);
    return fail((error as Error).message, 2);
  }
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  const socket = env.RUNYARD_AGENT_SOCKET;
  if (!socket) return fail('RUNYARD_AGENT_SOCKET is not set: this command works only inside a run');
  // Read the URL from the setting `remote.origin.url`, because `git remote get-url` would return the URL of the gateway.
  const place = values.repository ?? (await git('config', '--get', 'remote.origin.url'));
  const repository = place === undefined ? undefined : repositoryOf(place);
  if (repository === undefined)
    return fail('the repository is not known: call this in its folder, or name it with --repository OWNER/REPO');
  const head = values.head ?? (await git('branch', '--show-current'));
  if (head === undefined) return fail('no branch is checked out here: name it with --head BRANCH');
  const title =
    values.title ?? (await git('log', '-1', '--format=%s'))?.slice(0, longestTitle).replace(/[\ud800-\udbff]$/, '');
  if (title === undefined) return fail('there is no commit to take the title from: give one with --title TEXT');
  let body = values.body;
  const file = values['body-file'];
  if (file !== undefined) {
    const content = await readFile(file, 'utf8').catch((error: Error) => error);
    if (content instanceof Error) return fail(`--body-file cannot be read: ${content.message}`);
    body = content;
  }
  // Without a title and a body, use the message of the last commit.
  if (body === undefined && values.title === undefined) body = await git('log', '-1', '--format=%b');
  const { base, draft } = values;
  const request: PullRequestSocketRequest = {
    pull_request: {
      repository,
      head,
      title,
      ...(base === undefined ? {} : { base }),
      ...(body === undefined ? {} : { body }),
      ...(draft ? { draft } : {}),
    },
  };
  try {
    const answer = await askAgent<PullRequestAnswer>(socket, request);
    if (!answer.ok) return fail(answer.message);
    process.stdout.write(`${answer.url}\n`);
    if (!answer.is_new) process.stderr.write('pull-request: the branch already had an open pull request\n');
    return 0;
  } catch (error) {
    return fail(`the agent did not answer: ${(error as Error).message}`);
  }
}

function parse(argv: readonly string[]) {
  const { values } = parseArgs({ args: [...argv], options });
  if (values.body !== undefined && values['body-file'] !== undefined)
    throw new Error('--body and --body-file exclude each other');
  return values;
}
