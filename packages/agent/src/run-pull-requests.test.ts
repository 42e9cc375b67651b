import { expect, test } from 'vitest';
import { ended, fake, of, sh, start } from '../test/run.ts';

/** Makes programs that print what the real ones print. */
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

const reported = () => fake.artifacts.map(({ artifact_type, data }) => [artifact_type, data]);

test('reports the pull requests that a run opens as artifacts before the end of the turn', async () => {
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

test('reports a pull request once if it is printed twice or reported by the run itself', async () => {
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

test('ignores a pull request in the output of another command', async () => {
  await start(sh('echo https://github.test/o/r/pull/1; echo "remote: https://github.test/o/r/pull/2"'));
  await ended();
  expect(reported()).toEqual([]);
});

test('does not fail a run whose pull request cannot be reported', async () => {
  await start(sh(tools, 'bin/gh pr create'), {
    prepare: (fake) => {
      fake.fault = ({ path }) => (path.endsWith('/report-artifact') ? { status: 400 } : undefined);
    },
  });
  await ended();
  expect(fake.finished[0]?.success).toBe(true);
});
