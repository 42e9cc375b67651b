import { describe, expect, test } from 'vitest';
import { detectPullRequests } from './detect.ts';

const detect = (command: string | string[], output: string) => detectPullRequests().inCommand(command, output);

const gitlabPush = `remote: 
remote: View merge request for fix-login:        
remote:   https://gitlab.example.com/group/sub/repo/-/merge_requests/42        
remote: 
To gitlab.example.com:group/sub/repo.git
   1a2b3c4..5d6e7f8  fix-login -> fix-login
`;

describe('the detector finds in the output of a push', () => {
  test('a merge request of GitLab with its branch', () => {
    expect(detect('git push', gitlabPush)).toEqual([
      { url: 'https://gitlab.example.com/group/sub/repo/-/merge_requests/42', branch: 'fix-login' },
    ]);
  });

  test('a pull request of Bitbucket, and removes the query from the URL', () => {
    const output = `remote: 
remote: View pull request for fix => main:
remote:   https://bitbucket.org/team/repo/pull-requests/5?t=1
remote: 
To bitbucket.org:team/repo.git
   1a2b3c4..5d6e7f8  fix -> fix`;
    expect(detect('git push', output)).toEqual([
      { url: 'https://bitbucket.org/team/repo/pull-requests/5', branch: 'fix' },
    ]);
  });

  test('pull requests of Bitbucket Data Center and Forgejo with the pushed branch', () => {
    const pushed = '   1a2b3c4..5d6e7f8  HEAD -> topic (forced update)';
    const onHost = (url: string) =>
      detect('git push', `remote: Visit the existing pull request:\nremote:   ${url}\n${pushed}`);
    expect(onHost('https://git.corp.example/projects/P/repos/r/pull-requests/3/overview')).toEqual([
      { url: 'https://git.corp.example/projects/P/repos/r/pull-requests/3', branch: 'topic' },
    ]);
    expect(onHost('https://codeberg.org/o/r/pulls/9')).toEqual([
      { url: 'https://codeberg.org/o/r/pulls/9', branch: 'topic' },
    ]);
  });

  test('nothing in a message that suggests to open a pull request', () => {
    const invitations = `remote: Create a pull request for 'fix' on GitHub by visiting:
remote:      https://github.com/o/r/pull/new/fix
remote: To create a merge request for fix, visit:
remote:   https://gitlab.com/o/r/-/merge_requests/new?merge_request%5Bsource_branch%5D=fix
remote:   https://bitbucket.org/o/r/pull-requests/new?source=fix&t=1
 * [new branch]      fix -> fix`;
    expect(detect('git push -u origin fix', invitations)).toEqual([]);
  });

  test('pull requests only in lines that the server sent', () => {
    expect(
      detect('git push; cat README.md', 'see https://github.com/o/r/pull/1\nhttps://github.com/o/r/pull/2'),
    ).toEqual([]);
  });

  test.each([
    ['git -C repo -c http.proxy=x --no-pager push', 'fix-login'],
    ['cd repo && git push --force-with-lease origin HEAD:refs/heads/other', 'fix-login'],
    ['if true; then GIT_TRACE=1 /usr/bin/git push; fi', 'fix-login'],
    ['bash -lc "cd repo; git push"', 'fix-login'],
    ['(git \\\n  push)', 'fix-login'],
  ])('the form that is written as %s', (command, branch) => {
    expect(detect(command, gitlabPush)).toEqual([expect.objectContaining({ branch })]);
  });

  test('a pull request if the command is given as a list of a program and its arguments', () => {
    expect(detect(['git', 'push'], gitlabPush)).toHaveLength(1);
    expect(detect(['/bin/bash', '-lc', 'git push'], gitlabPush)).toHaveLength(1);
  });

  test.each([
    'git log',
    'echo git push',
    'cat push.log',
    'git stash push',
    "echo 'x; git push'",
    'grep -r git push .',
    '',
  ])('nothing if the command is %s', (command) => {
    expect(detect(command, gitlabPush)).toEqual([]);
  });
});

describe('the detector finds in the output of gh, glab and hub', () => {
  const url = 'https://github.com/o/r/pull/12';

  test('the pull request that the command opens, and its branch', () => {
    const output = `\nCreating draft pull request for fix into main in o/r\n\n\u001b[36m${url}\u001b[0m\n`;
    expect(detect('gh pr create --draft --fill', output)).toEqual([{ url, branch: 'fix' }]);
    const glab = `\nCreating merge request for fix into main in o/r\n\n!7 Fix it (fix)\n https://gitlab.com/o/r/-/merge_requests/7\n`;
    expect(detect('glab mr create --fill -y', glab)).toEqual([
      { url: 'https://gitlab.com/o/r/-/merge_requests/7', branch: 'fix' },
    ]);
    expect(detect('hub pull-request -m "Fix" -h me:fix', url)).toEqual([{ url, branch: 'fix' }]);
  });

  test('a pull request that exists already', () => {
    const output = `a pull request for branch "me:fix" into branch "main" already exists:\n${url}\n`;
    expect(detect('gh pr create', output)).toEqual([{ url, branch: 'fix' }]);
  });

  test('the branch that a flag of the command names, even after a title with shell separators', () => {
    expect(detect(`gh pr create --title 'a; b | c' --body "x && y" --head me:topic`, url)).toEqual([
      { url, branch: 'topic' },
    ]);
    expect(detect('gh pr new -H topic', url)).toEqual([{ url, branch: 'topic' }]);
    expect(detect('gh pr create --head=topic', url)).toEqual([{ url, branch: 'topic' }]);
  });

  test('nothing in the output of commands that only show pull requests, and nothing inside a sentence', () => {
    expect(detect('gh pr list', url)).toEqual([]);
    expect(detect('gh pr view 12', url)).toEqual([]);
    expect(detect('gh pr create', `Warning: see ${url} for more`)).toEqual([]);
    expect(detect('gh issue create', 'https://github.com/o/r/issues/3')).toEqual([]);
    expect(detect('gh pr create', 'https://github.com/o/r/issues/3\nhttps://api.github.com/repos/o/r/pulls/3')).toEqual(
      [],
    );
  });
});

describe('after several commands of a run,', () => {
  const url = 'https://github.com/o/r/pull/12';

  test.each([
    ['git checkout -b topic origin/main'],
    ['git switch --create topic'],
    ['git switch topic'],
    ['git push -u origin topic'],
    ['git push origin +HEAD:refs/heads/topic'],
  ])('the detector remembers the branch of %s', (command) => {
    const detector = detectPullRequests();
    expect(detector.inCommand(command, '')).toEqual([]);
    detector.inCommand('git checkout -- file; git push "$BRANCH"; ls', '');
    expect(detector.inCommand('gh pr create --fill', url)).toEqual([{ url, branch: 'topic' }]);
  });

  test('the branch of a pull request is HEAD if no command names a branch', () => {
    expect(detect('gh pr create --head "$BRANCH"', url)).toEqual([{ url, branch: 'HEAD' }]);
  });

  test('the detector reports each new pull request once, and does not report known pull requests', () => {
    const detector = detectPullRequests();
    detector.markKnown('https://github.com/o/r/pull/1/files');
    const output = `https://github.com/o/r/pull/1\n${url}\n${url}/files\n`;
    expect(detector.inCommand('gh pr create', output).map((found) => found.url)).toEqual([url]);
    expect(detector.inCommand('gh pr create', output)).toEqual([]);
  });

  test('the detector removes credentials from the URL of a pull request', () => {
    expect(detect('gh pr create', 'https://user:secret@github.com/o/r/pull/1?token=x')).toEqual([
      { url: 'https://github.com/o/r/pull/1', branch: 'HEAD' },
    ]);
  });

  test('the detector handles very long and malformed commands and outputs quickly', () => {
    const start = performance.now();
    expect(detect('"'.repeat(200_000), gitlabPush)).toEqual([]);
    expect(detect(`${'bash -c '.repeat(10_000)}`, '')).toEqual([]);
    expect(detect('git push', `remote: ${'pull request for '.repeat(10_000)}\n ${'*'.repeat(50_000)} -> `)).toEqual([]);
    expect(detect('gh pr create', `https://${'a/'.repeat(100_000)}pull/1`)).toEqual([]);
    expect(performance.now() - start).toBeLessThan(10_000);
  });
});
