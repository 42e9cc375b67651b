/** Changed files of a run in the git repositories of its workspace. */
import { z } from 'zod';
import { maxChangedFiles, maxChangedRepositories, maxFilePatchBytes } from '../limits.ts';
import { Timestamp } from '../wire/primitives.ts';

const ChangeStatus = z.enum(['added', 'modified', 'deleted', 'renamed', 'type_changed']).meta({
  id: 'ChangeStatus',
  description: 'The change of a file; `type_changed`: a file became a link, or a link a file',
});

const FilePath = z.string().max(4096);

export const ChangedFile = z
  .object({
    path: FilePath.describe('Path in the repository. The agent chose the path, so it can contain any characters'),
    old_path: FilePath.optional().describe('Earlier path of a renamed file'),
    status: ChangeStatus,
    additions: z.int().min(0).optional().describe('Added lines; absent: the file is binary or too large'),
    deletions: z.int().min(0).optional().describe('Deleted lines; absent: the file is binary or too large'),
    binary: z.literal(true).optional().describe('Present if the file is no text'),
    too_large: z
      .literal(true)
      .optional()
      .describe('Present if `patch` is left out: file or patch is too large, or all patches together are'),
    patch: z
      .string()
      .max(maxFilePatchBytes)
      .optional()
      .describe(
        'Hunks of the unified diff, beginning with the first `@@`, without file headers; absent: omitted, or there are no hunks',
      ),
  })
  .meta({ id: 'ChangedFile', description: 'A file that differs from the commit at the start' });
export type ChangedFile = z.infer<typeof ChangedFile>;

export const RepositoryChanges = z
  .object({
    path: FilePath.describe('Folder of the repository in the workspace; empty: the workspace itself'),
    base_commit: z
      .string()
      .max(64)
      .optional()
      .describe('Cloned commit with which the files are compared; absent: the run created the repository'),
    branch: z.string().max(1024).optional().describe('Present branch; absent: none is checked out'),
    files: z.array(ChangedFile).max(maxChangedFiles).describe('Files that differ, in the order of their paths'),
    files_left_out: z.int().min(1).optional().describe('Number of further files that differ; absent: none'),
    problem: z.string().max(2000).optional().describe('Why the files could not be compared; absent: they were'),
  })
  .meta({ id: 'RepositoryChanges', description: 'The changes of a git repository since the commit that was cloned' });
export type RepositoryChanges = z.infer<typeof RepositoryChanges>;

const repositories = z
  .array(RepositoryChanges)
  .max(maxChangedRepositories)
  .describe('Repositories of the workspace, at most 20, including those without changes');

/** `POST /harness-support/changes`. */
export const ReportChanges = z
  .object({ repositories })
  .meta({ id: 'ReportChanges', description: 'The changes of the run so far' });
export type ReportChanges = z.infer<typeof ReportChanges>;

/** `GET /agent/runs/{runId}/changes`. */
export const RunChanges = z
  .object({
    as_of: Timestamp.optional().describe(
      'Time when the sandbox reported them, RFC 3339 in UTC; absent: it has reported no changes yet',
    ),
    is_live: z
      .boolean()
      .describe('true: the agent is at work and was asked for its present changes. Read again after about 5 s'),
    repositories,
  })
  .meta({ id: 'RunChanges', description: 'The changes of a run in the git repositories of its workspace' });
export type RunChanges = z.infer<typeof RunChanges>;
