import { z } from 'zod';
import { teamReads } from '../wire/access.ts';
import { EmptyResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import { ReportChanges, RunChanges } from './changes.ts';
import { HandoffAttachments, UploadSnapshot, UploadSnapshotResponse } from './handoff.ts';

export const handoffRoutes = {
  listHandoffAttachments: {
    method: 'GET',
    path: '/agent/runs/{runId}/handoff/attachments',
    tag: 'runs',
    summary: 'List the files for continuing the work elsewhere',
    description:
      'For each git repository of the workspace, a patch against the cloned commit with commits, staged, unstaged and untracked changes; of a workspace without git repositories, up to 30 of its newest files (each up to 5 MB, together 20 MB); and the files that the agent handed off. All are from the end of the last turn.',
    allow: teamReads,
    params: z.object({ runId: z.string().meta({ description: 'Id of the run' }) }),
    answer: { status: 200, description: 'Files; empty if the run saved no files', schema: HandoffAttachments },
    errors: { 404: 'No such run, or it belongs to another team' },
  },
  getRunChanges: {
    method: 'GET',
    path: '/agent/runs/{runId}/changes',
    tag: 'runs',
    summary: 'Read the files that a run has changed',
    description:
      'For each git repository of the workspace, the difference from the cloned commit, including commits, staged, unstaged and untracked changes. It is what the sandbox reported last (`as_of`): after each turn, and, while the agent works, a few seconds after a request. At most 1,000 files, 128 KB for the patch of a file and 2 MB for all patches. `listHandoffAttachments` has patches for `git apply`.',
    allow: teamReads,
    params: z.object({ runId: z.string().meta({ description: 'Id of the run' }) }),
    answer: {
      status: 200,
      description: 'The changes; no repositories if no changes were reported',
      schema: RunChanges,
    },
    errors: { 404: 'No such run, or it belongs to another team' },
  },
  reportChanges: {
    method: 'POST',
    path: '/harness-support/changes',
    tag: 'harness',
    allow: { run: 'until_end' },
    summary: 'Report the changed files of the workspace',
    description: 'Replaces the report before.',
    body: ReportChanges,
    bodyLimitBytes: 8 * 1024 * 1024,
    answer: { status: 200, description: 'Stored', schema: EmptyResponse },
    errors: { 413: 'The team has no room for them (RUNYARD_TEAM_STORAGE_MB)' },
  },
  uploadSnapshot: {
    method: 'POST',
    path: '/harness-support/upload-snapshot',
    tag: 'harness',
    allow: { run: 'until_end' },
    summary: 'Begin a snapshot',
    description:
      "It replaces the execution's older snapshot when the last byte of its last file has arrived, or at once if it has no files.",
    body: UploadSnapshot,
    answer: { status: 200, description: 'Upload addresses of the files, in order', schema: UploadSnapshotResponse },
    errors: {
      400: 'More than 100 files, or one of more than 25 MB',
      413: 'The team has no room for them (RUNYARD_TEAM_STORAGE_MB)',
    },
  },
  putSnapshotFile: {
    method: 'PUT',
    path: '/harness-support/snapshot-files/{fileId}',
    tag: 'harness',
    allow: { anyone: 'with_signature' },
    summary: 'Upload the bytes of a file of a snapshot',
    params: z.object({ fileId: z.string().describe('Id of the file; part of the signed URL') }),
    query: z.object({
      expires: z.string().meta({ description: 'Unix time in seconds' }),
      signature: z.string().describe('Part of the signed URL; use it unchanged'),
    }),
    bodyType: 'application/octet-stream',
    answer: { status: 200, description: 'Stored', schema: EmptyResponse },
    errors: {
      400: 'Fewer bytes than were announced',
      403: 'The signature is wrong or has expired',
      404: 'A newer snapshot took its place',
      409: 'Its bytes were already uploaded',
      413: 'More bytes than were announced',
    },
  },
} as const satisfies Record<string, Route>;
