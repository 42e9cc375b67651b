import { expect, test } from 'vitest';
import { ended, fake, of, sh, start } from '../test/run.ts';

/** A script that creates fake programs with the same output as the real programs. */
const tools = `mkdir -p bin
cat > bin/git <<'END'
#!/bin/sh
printf 'remote: \\nremote: View merge request for fix:\\nremote:   https://gitlab.test/o/r/-/merge_requests/7\\nremote: \\n' >&2
END
cat > bin/gh <<'END'
#!/bin/sh
echo https://github.test/o/r/pull/12
END
chmod +x bin/*`;

const sent: unknown[] = [];
const reported = () => fake.artifacts.map(({ artifact_type, data }) => [artifact_type, data]);

test('the agent reports the pull requests that a run opens as artifacts before the end of the turn', async () => {
  let finishedWith = -1;
  await start(sh(tools, 'PATH="$PWD/bin:$PATH"\ngit push origin fix', 'bin/gh pr create --fill --head topic'), {
    prepare: (fake) => {
      fake.fault = ({ path }) => {
        if (path.endsWith('/finish-task')) finishedWith = fake.artifacts.length;
        return undefined;
      };
    },
  });
  await ended();
  expect(of('action_result').map(({ state }) => state)).toEqual(['completed', 'completed', 'completed']);
  expect(reported()).toEqual([
    ['PULL_REQUEST', { url: 'https://gitlab.test/o/r/-/merge_requests/7', branch: 'fix' }],
    ['PULL_REQUEST', { url: 'https://github.test/o/r/pull/12', branch: 'topic' }],
  ]);
  expect(finishedWith).toBe(2);
});

test('the agent reports a pull request once if a command prints it twice or the run reports it itself', async () => {
  await start(
    sh(
      tools,
      'bin/gh pr create --head topic',
      'bin/gh pr create --head topic',
      'report-artifact --type PULL_REQUEST --url https://gitlab.test/o/r/-/merge_requests/7 --branch mine; bin/git push',
    ),
  );
  await ended();
  expect(reported()).toEqual([
    ['PULL_REQUEST', { url: 'https://github.test/o/r/pull/12', branch: 'topic' }],
    ['PULL_REQUEST', { url: 'https://gitlab.test/o/r/-/merge_requests/7', branch: 'mine' }],
  ]);
});

test('the agent ignores a pull request in the output of a command that does not open pull requests', async () => {
  await start(sh('echo https://github.test/o/r/pull/1; echo "remote: https://github.test/o/r/pull/2"'));
  await ended();
  expect(reported()).toEqual([]);
});

test('a run does not fail if its pull request cannot be reported', async () => {
  await start(sh(tools, 'bin/gh pr create'), {
    prepare: (fake) => {
      fake.fault = ({ path }) => (path.endsWith('/report-artifact') ? { status: 400 } : undefined);
    },
  });
  await ended();
  expect(fake.finished[0]?.success).toBe(true);
});

test('the command pull-request opens a pull request from the last commit, the branch and the remote of the current folder', async () => {
  const commit = 'git -c user.name=a -c user.email=a@example.invalid commit --quiet --allow-empty';
  await start(
    sh(
      `git init --quiet --initial-branch=topic site && cd site && git remote add origin git@github.com:acme/site.git && ${commit} -m "Fix it" -m "Because." && pull-request && pull-request --title T --head other --repository acme/lib --draft`,
      'pull-request || echo "code $?"; cd site; pull-request --head unknown || echo "code $?"; pull-request --odd || echo "code $?"',
    ),
    {
      prepare: (fake) => {
        fake.fault = ({ path, body }) => {
          if (path.endsWith('/pull-requests')) sent.push(JSON.parse(String(body)));
          return undefined;
        };
      },
    },
  );
  await ended();
  const [first, second] = of('action').map(({ action_id }) => fake.output(action_id));
  expect(first).toBe('https://host.example/acme/site/pull/1\nhttps://host.example/acme/lib/pull/2\n');
  expect(second).toContain('call this in its folder, or name it with --repository OWNER/REPO\ncode 1');
  expect(second).toContain('pull-request: Push it first.\ncode 1');
  expect(second).toContain('code 2');
  const site = { owner: 'acme', repo: 'site' };
  expect(sent).toEqual([
    { repository: site, head: 'topic', title: 'Fix it', body: 'Because.' },
    { repository: { owner: 'acme', repo: 'lib' }, head: 'other', title: 'T', draft: true },
    { repository: site, head: 'unknown', title: 'Fix it', body: 'Because.' },
  ]);
  expect(reported()).toEqual([
    ['PULL_REQUEST', { url: 'https://host.example/acme/site/pull/1', branch: 'topic' }],
    ['PULL_REQUEST', { url: 'https://host.example/acme/lib/pull/2', branch: 'other' }],
  ]);
});
