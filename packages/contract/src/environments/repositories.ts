/** The repositories of an environment, and how they are cloned. */
import { z } from 'zod';
import { isAmbiguousRef, refName, repositoryName } from './repository-names.ts';

export const maxRepositories = 20;

/** Name of a repository or of the repository's owner. */
export const RepositoryName = z
  .string()
  .regex(repositoryName, { error: 'must be 1 to 100 characters of [A-Za-z0-9_.-], not only dots' });

/** A repository on the code host. */
export const Repository = z
  .object({
    owner: RepositoryName.describe('Owner of the repository on the code host'),
    repo: RepositoryName.describe('Name of the repository'),
  })
  .meta({ id: 'Repository', description: 'A repository on the code host' });
export type Repository = z.infer<typeof Repository>;

/**
 * A relative path without a part `..`. The pattern has no look-ahead, because programs that generate requests from the OpenAPI document do
 * not support look-ahead.
 */
const pathPart =
  '(?:[^/.\\u0000-\\u001f\\u007f-\\u009f][^/\\u0000-\\u001f\\u007f-\\u009f]*|\\.(?:[^/.\\u0000-\\u001f\\u007f-\\u009f][^/\\u0000-\\u001f\\u007f-\\u009f]*|\\.[^/\\u0000-\\u001f\\u007f-\\u009f]+)?)';
export const folderInWorkspace = new RegExp(`^${pathPart}(?:/+${pathPart})*/*$`, 'u');

/** A folder below the workspace or a repository. Git cannot read the name as an option. */
const folder = z
  .string()
  .max(200)
  .regex(/^[A-Za-z0-9_.@+][A-Za-z0-9_.@+ -]*(?:\/[A-Za-z0-9_.@+][A-Za-z0-9_.@+ -]*)*\/?$/, {
    error: 'must be a relative path of [A-Za-z0-9_.@+ -] and /, at most 200 characters',
  })
  .refine((path) => !/(?:^|\/)(?:\.+|\.git)(?:\/|$)/i.test(path), { error: 'cannot have a part `.`, `..` or `.git`' });

const cloneMembers = {
  ref: z
    .string()
    .regex(refName, {
      error: 'must be the name of a branch or tag, or the id of a commit, at most 200 characters',
    })
    .refine((ref) => !isAmbiguousRef(ref), { error: 'cannot contain `..` or `@{`' })
    .optional()
    .describe('Branch, tag or whole id of a commit to check out. Absent: the default branch'),
  depth: z
    .int()
    .min(0)
    .max(1_000_000)
    .optional()
    .describe('Number of commits of the history to fetch; 0: the whole history, all branches and tags. Default: 1'),
  filter: z
    .string()
    .regex(/^(?:blob:none|blob:limit=[0-9]{1,9}[kmg]?|tree:0)$/, {
      error: 'must be `blob:none`, `tree:0`, or `blob:limit=` with a size such as 1m',
    })
    .optional()
    .describe(
      'Objects that are fetched only when a program needs them (partial clone): `blob:none`, `blob:limit=1m` or `tree:0`',
    ),
  sparse: z
    .array(folder)
    .min(1)
    .max(100)
    .optional()
    .describe('Folders to check out, beside the files at the top (sparse checkout), at most 100. Absent: all'),
  path: folder
    .optional()
    .describe('Folder of the clone in the workspace, at most 3 levels deep. Absent: the name of the repository'),
  lfs: z
    .boolean()
    .optional()
    .describe(
      'Files of Git LFS. true: if they cannot be fetched, the setup fails. Absent: they stay pointers then, and the setup step says so. false: they are not fetched',
    ),
  submodules: z
    .boolean()
    .optional()
    .describe('true: clones those submodules whose repositories are in this list too. Default: false'),
  checkout: z
    .boolean()
    .optional()
    .describe(
      'false: runs may clone the repository, for example as a submodule, but the setup does not. Default: true',
    ),
} as const;

/** A repository of an environment. */
export const EnvironmentRepository = Repository.extend(cloneMembers).meta({
  id: 'EnvironmentRepository',
  description: 'A repository, and how it is cloned into the workspace',
});
export type EnvironmentRepository = z.infer<typeof EnvironmentRepository>;

/** A repository in a request: by owner and name, or by the address of its page or clone on the code host. */
export const NamedRepository = EnvironmentRepository.partial({ owner: true, repo: true })
  .extend({
    url: z
      .string()
      .max(500)
      .optional()
      .describe('Address on the code host, such as https://github.com/octocat/Hello-World, instead of owner and repo'),
  })
  .refine(
    ({ owner, repo, url }) => (url === undefined ? owner !== undefined && repo !== undefined : !(owner ?? repo)),
    {
      error: 'needs owner and repo, or url',
    },
  )
  .meta({
    id: 'NamedRepository',
    description: 'A repository by owner and name, or by its address, and how it is cloned into the workspace',
  });
export type NamedRepository = z.infer<typeof NamedRepository>;

const levels = (path: string): string[] =>
  path
    .toLowerCase()
    .split('/')
    .filter((part) => part !== '');

/** Returns whether no repository has its `path` inside of the `path` of another one, and each `path` is at most 3 levels deep. */
export function haveOwnFolders(repositories: readonly Pick<NamedRepository, 'path'>[]): boolean {
  const paths = repositories.flatMap(({ path }) => (path === undefined ? [] : [levels(path)]));
  const isInside = (inner: readonly string[], outer: readonly string[]) =>
    outer.every((part, index) => inner[index] === part);
  return (
    paths.every((path) => path.length <= 3 && path[0] !== 'attachments') &&
    paths.every((path, at) => paths.every((other, index) => index === at || !isInside(path, other)))
  );
}
