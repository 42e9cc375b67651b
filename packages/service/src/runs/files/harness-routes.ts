import type { ReportArtifactResponse } from '@runyard/contract/agent/agent-protocol';
import { routes } from '@runyard/contract/routes';
import type { z } from 'zod';
import { signUrl } from '../../platform/secrets/signed-urls.ts';
import type { Signer } from '../../platform/secrets/signer.ts';
import { invalid, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { BlobStore } from '../../platform/store/blobs/blobs.ts';
import type { Database } from '../../platform/store/database/database.ts';
import type { ExecutionDeps } from '../executions/deps.ts';
import { serveRun, serveRunOnce } from '../executions/run-tokens/sessions.ts';
import { reportArtifact } from './artifacts/report.ts';
import { type RoomDeps, refuseStatedSize } from './artifacts/room.ts';
import { reportChanges } from './changes/report.ts';
import { beginHandoff } from './handoffs/begin.ts';
import { artifactUploadTarget, snapshotUploadTarget } from './signed-targets.ts';

interface HarnessFileRouteDeps extends RoomDeps {
  readonly db: Database;
  readonly blobs: BlobStore;
  readonly executionDeps: ExecutionDeps;
  readonly signing: Signer;
  baseUrl(): string;
}

/** Routes with which an agent reports artifacts, changed files, and the files of a snapshot. The agent uploads the bytes afterwards. */
export const harnessFileRoutes = (deps: HarnessFileRouteDeps): readonly ServedRoute[] => [
  serveRunOnce(routes.reportArtifact, {
    work: async (tx, { session, body }) => {
      const refusal = await refuseStatedSize(deps, tx, session, body);
      if (refusal) return refuse('invalid_request', { status: 413, detail: refusal.detail });
      const stored = await reportArtifact(deps.executionDeps, tx, session, body);
      return stored.kind === 'stored' ? stored : invalid(stored.faults);
    },
    answer: ({ artifactUid, isFileLike }) => {
      const answer: z.output<typeof ReportArtifactResponse> = { artifact_uid: artifactUid };
      if (isFileLike) answer.upload_url = signUrl(deps.signing, deps.baseUrl(), artifactUploadTarget(artifactUid)).url;
      return answer;
    },
  }),

  serveRun(routes.reportChanges, async ({ session, body }) => {
    const refusal = await reportChanges(deps, session, body);
    return refusal ? refuse('invalid_request', { status: 413, detail: refusal.detail }) : {};
  }),

  serveRun(routes.uploadSnapshot, async ({ session, body }) => {
    const ids = await beginHandoff(deps, session, body);
    if ('kind' in ids) return refuse('invalid_request', { status: 413, detail: ids.detail });
    const files = ids.map((id, index) => ({
      filename: body.files[index]?.filename ?? '',
      upload_url: signUrl(deps.signing, deps.baseUrl(), snapshotUploadTarget(id)).url,
    }));
    return { files };
  }),
];
