/** The test cases in which a harness program works in a cloned repository. The remote repository shows the effects. */
import { eventually } from '../../test/support/system.ts';
import { begin, followUp, type Ground, must, until, untilSucceeded } from './ground.ts';

const heldPushes = { approval_policy: 'ask', approval_rules: [{ push: '*' }] };

/**
 * The model writes a file in a cloned repository, commits it and pushes it. The remote repository shows whether this happened. With
 * `isHeld`, an approval rule holds the push until a person approves it.
 */
export async function commitAndPush(ground: Ground, isHeld = false): Promise<string> {
  const { preset, system, codeHost } = ground;
  const repository = { owner: 'acme', repo: isHeld ? `${preset.type}-held` : preset.type };
  await codeHost.commit(repository.owner, repository.repo, { 'README.md': 'one\n' });
  const config = {
    name: `repository ${repository.repo}`,
    github_repos: [repository],
    working_directory: repository.repo,
  };
  const { uid } = await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201);
  const id = await begin(
    ground,
    [
      { write: `/workspace/${repository.repo}/b.txt`, text: 'by the model\n' },
      { shell: 'git add --all && git commit --quiet --message "Add b"' },
      { shell: 'git push --quiet origin HEAD:refs/heads/of-the-run' },
    ],
    { config: { environment_id: uid, ...(isHeld ? heldPushes : {}) }, idleMinutes: isHeld ? 5 : 0 },
  );
  if (isHeld) {
    const { blocked_on: asked } = await until(ground, id, ({ state }) => state === 'BLOCKED');
    must(asked?.title.includes('of-the-run: new branch') === true, `it asks ${asked?.title}`);
    must(
      (await codeHost.branchAt(repository.owner, repository.repo, 'of-the-run')) === '',
      'it pushed before the answer',
    );
    await system.call('POST', `/agent/runs/${id}/followups`, { decision: 'approve', request_id: asked?.request_id });
  }
  await untilSucceeded(ground, id);
  const { name, email, subject } = await codeHost.lastCommit(repository.owner, repository.repo, 'of-the-run');
  must(subject === 'Add b', `the last commit of the branch is ${subject}`);
  must(name !== '' && email.includes('@'), `its author is ${name} <${email}>`);
  const text = await codeHost.read(repository.owner, repository.repo, 'b.txt', 'of-the-run');
  must(text.trim() === 'by the model', `the file has the content ${text}`);
  return isHeld ? 'pushed after the approval' : 'pushed';
}

const brokenProject = {
  'add.cjs': 'exports.add = (a, b) => a - b;\n',
  'add.test.cjs': "require('assert').equal(require('./add.cjs').add(1, 2), 3);\n",
  'CHANGELOG.md': '# Changes\n',
};

/** The model fixes a failing test and opens a pull request. After a message, it updates the changelog in the same pull request. */
export async function pullRequest(ground: Ground): Promise<string> {
  const { preset, system, codeHost, pulls } = ground;
  const [owner, repo] = [preset.type, 'fix'];
  await codeHost.commit(owner, repo, brokenProject);
  await system.call(
    'POST',
    '/code-hosts',
    { scope: 'team', kind: 'token', owner, token: 'github_pat_of_the_team' },
    201,
  );
  const config = { name: `fix of ${owner}`, github_repos: [{ owner, repo }], working_directory: repo };
  const { uid } = await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201);
  const id = await begin(
    ground,
    [
      { shell: 'node add.test.cjs || sed -i "s/a - b/a + b/" add.cjs && node add.test.cjs' },
      { shell: `git checkout -q -b fix-${owner} && git commit --quiet --all --message "Fix add"` },
      { shell: `git push --quiet origin fix-${owner} && pull-request --title "Fix add"` },
      { shell: 'git log -1 --stat > /tmp/report.txt && report-artifact /tmp/report.txt' },
    ],
    { config: { environment_id: uid }, idleMinutes: 5 },
  );
  const run = await untilSucceeded(ground, id);
  must(pulls.filter(({ head }) => head === `fix-${owner}`).length === 1, 'there is no pull request');
  const kinds = (run.artifacts ?? []).map(({ artifact_type: kind }) => kind).sort();
  must(kinds.join() === 'FILE,PULL_REQUEST', `its artifacts are ${kinds.join()}`);
  const cost = run.request_usage?.inference_cost_usd;
  must(cost === undefined ? preset.type === 'qwen' : cost > 0, `its cost is ${cost}`);
  await followUp(ground, id, {
    shell: `echo "- Fix add" >> CHANGELOG.md && git commit --quiet --all --message "List the fix" && git push --quiet origin fix-${owner}`,
  });
  const subjectAt = async () => (await codeHost.lastCommit(owner, repo, `fix-${owner}`)).subject;
  await eventually('commit of the second turn', async () => (await subjectAt()) === 'List the fix', 60_000);
  await untilSucceeded(ground, id);
  must((await codeHost.read(owner, repo, 'add.cjs', `fix-${owner}`)).includes('a + b'), 'the fix is not in the branch');
  return 'opened, and updated after a message';
}
