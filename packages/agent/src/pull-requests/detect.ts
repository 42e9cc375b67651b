import { type Invocation, invocationsOf, unwrap } from './invocations.ts';

/**
 * Patterns for the path of a pull or merge request. The host is not checked, because many teams run GitLab or GitHub under their own host
 * name.
 */
const requestPaths: readonly RegExp[] = [
  // GitHub; Gitea and Forgejo write `pulls`.
  /^\/[^/]+\/[^/]+\/pulls?\/\d+(?=\/|$)/,
  // GitLab, with groups of any depth. Before version 12, the path has no dash.
  /^\/[^/]+(?:\/[^/]+)+\/merge_requests\/\d+(?=\/|$)/,
  // Bitbucket Cloud, and Bitbucket Data Center.
  /^\/[^/]+\/[^/]+\/pull-requests\/\d+(?=\/|$)/,
  /^(?:\/[^/]+)?\/(?:projects|users)\/[^/]+\/repos\/[^/]+\/pull-requests\/\d+(?=\/|$)/,
];

/**
 * Returns the URL of a pull request without tabs, query and credentials; undefined if the text is not such a URL.
 */
function pullRequestLocator(text: string): string | undefined {
  const url = URL.parse(text);
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') return undefined;
  for (const pattern of requestPaths) {
    const path = pattern.exec(url.pathname)?.[0];
    if (path !== undefined) return url.origin + path;
  }
  return undefined;
}

/** A pull or merge request that a command opened or updated. */
export interface NoticedPullRequest {
  readonly url: string;
  /** `HEAD` if no command named the branch. */
  readonly branch: string;
}

export interface PullRequestDetector {
  /** Returns the new pull requests that this command printed. `command` is a script, or a program with its arguments. */
  inCommand(command: string | readonly string[], output: string): NoticedPullRequest[];
  /** Marks a pull request as known, so that `inCommand` does not return it. Is for pull requests that the run has reported itself. */
  markKnown(url: string): void;
}

interface Printed {
  readonly url: string;
  readonly branch: string | undefined;
}

const maxCommandLength = 64 * 1024;
const maxBranchLength = 250;

/**
 * Finds pull requests in the output of `git push`, `gh pr create`, `glab mr create` and `hub pull-request`. The output of other
 * commands is ignored, because it may show a pull request that the run did not open.
 */
export function detectPullRequests(): PullRequestDetector {
  const known = new Set<string>();
  let currentBranch: string | undefined;
  return {
    inCommand: (command, output) => {
      const invocations =
        typeof command === 'string' ? invocationsOf(command.slice(0, maxCommandLength)) : unwrap(command);
      const found: NoticedPullRequest[] = [];
      // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control characters (ECMA-48, CSI … m).
      const lines = output.replaceAll(/\u001b\[[\d;]*[A-Za-z]/g, '').split(/\r?\n|\r/);
      for (const invocation of invocations) {
        currentBranch = branchOf(invocation) ?? currentBranch;
        for (const { url, branch } of printedBy(invocation, lines)) {
          if (known.has(url)) continue;
          known.add(url);
          found.push({ url, branch: usable(branch) ?? usable(currentBranch) ?? 'HEAD' });
        }
      }
      return found;
    },
    markKnown: (url) => {
      known.add(pullRequestLocator(url) ?? url);
    },
  };
}

const usable = (branch: string | undefined) =>
  branch !== undefined && branch !== '' && branch.length <= maxBranchLength && !/[$\s]/.test(branch)
    ? branch
    : undefined;

function printedBy([program, ...args]: Invocation, lines: readonly string[]): Printed[] {
  switch (program) {
    case 'git':
      return gitCommand(args)[0] === 'push' ? inPush(lines) : [];
    case 'gh':
    case 'glab':
      return isCreate(args) ? inCreate(lines) : [];
    case 'hub':
      return args[0] === 'pull-request' ? inCreate(lines) : gitCommand(args)[0] === 'push' ? inPush(lines) : [];
    default:
      return [];
  }
}

const isCreate = ([noun, verb]: readonly string[]) =>
  (noun === 'pr' || noun === 'mr') && (verb === 'create' || verb === 'new');

/** Options before the subcommand of git that take a value. */
const gitOptions: ReadonlySet<string> = new Set(['-C', '-c', '--git-dir', '--work-tree', '--namespace']);

function gitCommand(args: readonly string[]): readonly string[] {
  let at = 0;
  while (args[at]?.startsWith('-')) at += gitOptions.has(args[at] ?? '') ? 2 : 1;
  return args.slice(at);
}

/** Returns the branch that a command names. */
function branchOf([program, ...args]: Invocation): string | undefined {
  if (program === 'gh' || program === 'glab' || program === 'hub') {
    const flags =
      program === 'gh' ? ['--head', '-H'] : program === 'glab' ? ['--source-branch', '-s'] : ['--head', '-h'];
    if (program === 'hub' ? args[0] === 'pull-request' : isCreate(args))
      return usable(flagValue(args, flags)?.replace(/^[^:]*:/, ''));
  }
  if (program !== 'git' && program !== 'hub') return undefined;
  const [verb, ...rest] = gitCommand(args);
  if (verb === 'checkout') return usable(flagValue(rest, ['-b', '-B']));
  const plain = rest.filter((word) => !word.startsWith('-'));
  if (verb === 'switch') return usable(flagValue(rest, ['-c', '-C', '--create']) ?? plain[0]);
  const refspec = verb === 'push' ? plain[1] : undefined;
  const target = refspec
    ?.replace(/^\+/, '')
    .split(':')
    .at(-1)
    ?.replace(/^refs\/heads\//, '');
  return target === 'HEAD' ? undefined : usable(target);
}

function flagValue(args: readonly string[], flags: readonly string[]): string | undefined {
  for (const [at, word] of args.entries()) {
    if (flags.includes(word)) return args[at + 1];
    const flag = flags.find((each) => each.startsWith('--') && word.startsWith(`${each}=`));
    if (flag !== undefined) return word.slice(flag.length + 1);
  }
  return undefined;
}

/**
 * Finds pull requests in the output of a push. Lines of the server begin with `remote:`. After these lines, git lists the pushed
 * branches.
 */
function inPush(lines: readonly string[]): Printed[] {
  const found: Printed[] = [];
  // ` * [new branch]      fix -> fix`, `   1a2b3c4..5d6e7f8  fix -> fix`
  const pushed = lines.flatMap((line) => /^ [ *+=-] .*\S -> (\S+)(?: \(.*\))?$/.exec(line)?.[1] ?? []);
  const onlyPushed = new Set(pushed).size === 1 ? pushed[0] : undefined;
  let named: string | undefined;
  for (const line of lines) {
    const remoteText = /^\s*remote:\s*(.*?)\s*$/.exec(line)?.[1];
    if (remoteText === undefined) continue;
    // GitLab: "View merge request for fix:"; Bitbucket: "View pull request for fix => main:"
    named = /\b(?:merge|pull) request for '?([^\s']+?)'?(?: => \S+?)?:?$/.exec(remoteText)?.[1] ?? named;
    for (const [text] of remoteText.matchAll(/https?:\/\/[^\s<>"']+/g)) {
      const url = pullRequestLocator(text);
      if (url !== undefined) found.push({ url, branch: named ?? onlyPushed });
    }
  }
  return found;
}

/** Finds pull requests in the output of a command that creates a pull request. Such a command prints the URL on a separate line. */
function inCreate(lines: readonly string[]): Printed[] {
  const found: Printed[] = [];
  let named: string | undefined;
  for (const line of lines) {
    // "Creating draft pull request for fix into main in o/r"; "a pull request for branch "o:fix" into branch "main" already exists:"
    const branch = /\b(?:pull|merge) request for (?:branch )?"?([^\s"]+)"? into /.exec(line)?.[1];
    named = branch?.replace(/^[^:]*:/, '') ?? named;
    const text = line.trim();
    const url = /^https?:\/\/\S+$/.test(text) ? pullRequestLocator(text) : undefined;
    if (url !== undefined) found.push({ url, branch: named });
  }
  return found;
}
