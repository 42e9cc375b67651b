/** The requests with which a person works in a repository: issues, comments, branches, files, pull requests. New texts send their events. */
import { sampleOf } from './check-openapi.ts';
import type { FakeGithub } from './github.ts';
import { commentOf, type FakeAccount, type FakeIssue, type FakeRepository, issueInPayload } from './objects.ts';
import { pullOf } from './pulls.ts';
import { type FakeAnswer, type FakeRequest, issueOf, notFound, refuse, repositoryFor } from './routes.ts';

type Work = (
  fake: FakeGithub,
  request: FakeRequest,
  at: { readonly repository: FakeRepository; readonly user: FakeAccount },
) => FakeAnswer | Promise<FakeAnswer>;

const issueIn = (issue: FakeIssue, { urls }: FakeGithub) => sampleOf('issue', issueInPayload(issue, urls));

const refOf = (name: string, sha: string) =>
  sampleOf('git-ref', { ref: `refs/heads/${name}`, object: { type: 'commit', sha, url: 'https://github.example/' } });

/** Returns the commit of a branch; an empty text: there is none. Branches that requests have made are in `fake.branches`. */
const commitOf = async ({ git, branches }: FakeGithub, { id, owner, name }: FakeRepository, branch: string) =>
  branches.get(`${id} ${branch}`) ??
  (branch === 'main' ? ((await git?.branchAt(owner.login, name, branch)) ?? '') : '');

const openIssue: Work = async (fake, { body }, { repository, user }) => {
  const issue = fake.issue(repository, user, { title: String(body.title), body: String(body.body ?? '') });
  await fake.open(issue);
  return { status: 201, body: issueIn(issue, fake) };
};

const changeIssue: Work = (fake, { parts, body }, { repository }) => {
  const issue = issueOf(fake, repository, parts[2]);
  if (!issue) return notFound;
  if (body.state !== undefined) issue.isClosed = body.state === 'closed';
  return { status: 200, body: issueIn(issue, fake) };
};

const comment: Work = async (fake, { parts, body }, { repository, user }) => {
  const issue = issueOf(fake, repository, parts[2]);
  if (!issue) return notFound;
  await fake.comment(issue, user, String(body.body));
  const made = issue.comments.at(-1);
  return made ? { status: 201, body: commentOf(made, issue, fake.app, fake.urls) } : notFound;
};

const readRepository: Work = (_, __, { repository }) => ({
  status: 200,
  body: sampleOf('full-repository', {
    id: repository.id,
    name: repository.name,
    full_name: `${repository.owner.login}/${repository.name}`,
    private: repository.isPrivate,
    default_branch: 'main',
  }),
});

const readRef: Work = async (fake, { parts: [, , ref = ''] }, { repository }) => {
  const branch = ref.replace(/^heads\//, '');
  const sha = await commitOf(fake, repository, branch);
  return sha === '' ? notFound : { status: 200, body: refOf(branch, sha) };
};

const createRef: Work = async (fake, { body }, { repository }) => {
  const [, branch] = /^refs\/heads\/(.+)$/.exec(String(body.ref)) ?? [];
  if (branch === undefined) return refuse(422, 'Reference name must start with refs/');
  if ((await commitOf(fake, repository, branch)) !== '') return refuse(422, 'Reference already exists');
  if ((await commitOf(fake, repository, 'main')) !== body.sha) return refuse(422, 'Object does not exist');
  fake.branches.set(`${repository.id} ${branch}`, String(body.sha));
  return { status: 201, body: refOf(branch, String(body.sha)) };
};

const deleteRef: Work = (fake, { parts: [, , ref = ''] }, { repository }) =>
  fake.branches.delete(`${repository.id} ${ref.replace(/^heads\//, '')}`)
    ? { status: 204, body: undefined }
    : refuse(422, 'Reference does not exist');

const writeFile: Work = async (fake, { parts: [, , path = ''], body }, { repository }) => {
  const branch = String(body.branch ?? 'main');
  if (!fake.git || (await commitOf(fake, repository, branch)) === '') return refuse(404, `Branch ${branch} not found`);
  const { owner, name } = repository;
  const files = { [path]: Buffer.from(String(body.content), 'base64').toString('utf8') };
  const sha = await fake.git.replace(owner.login, name, { branch, files });
  fake.branches.set(`${repository.id} ${branch}`, sha);
  return { status: 201, body: sampleOf('file-commit', { commit: { sha } }) };
};

const openPull: Work = async (fake, { body }, { repository, user }) => {
  const branch = String(body.head);
  const head = await commitOf(fake, repository, branch);
  if (head === '' || head === (await commitOf(fake, repository, String(body.base))))
    return refuse(422, `No commits between ${body.base} and ${branch}`);
  const of = { title: String(body.title), body: String(body.body ?? ''), head, headBranch: branch };
  const pull = fake.issue(repository, user, of);
  await fake.open(pull);
  return { status: 201, body: sampleOf('pull-request', pullOf(pull, fake.urls)) };
};

const routes: readonly (readonly [method: string, path: string, access: 'read' | 'write', work: Work])[] = [
  ['GET', '', 'read', readRepository],
  ['POST', '/issues', 'write', openIssue],
  ['PATCH', '/issues/([0-9]+)', 'write', changeIssue],
  ['POST', '/issues/([0-9]+)/comments', 'write', comment],
  ['GET', '/git/ref/([^/]+)', 'read', readRef],
  ['POST', '/git/refs', 'write', createRef],
  ['DELETE', '/git/refs/([^/]+)', 'write', deleteRef],
  ['PUT', '/contents/([^/]+)', 'write', writeFile],
  ['POST', '/pulls', 'write', openPull],
];

/** Each request with its method and its path below the base of the API. */
export const personHandlers = routes.map(
  ([method, path, access, work]) =>
    [
      method,
      new RegExp(`^/repos/([\\w.-]+)/([\\w.-]+)${path}$`),
      (fake: FakeGithub, request: FakeRequest) => {
        const repository = repositoryFor(fake, request, '', access);
        if ('status' in repository) return repository;
        return request.caller.kind === 'user'
          ? work(fake, request, { repository, user: request.caller.user })
          : notFound;
      },
    ] as const,
);
