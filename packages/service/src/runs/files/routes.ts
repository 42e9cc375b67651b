import type { ReportArtifactResponse } from '@runyard/contract/agent/agent-protocol';
import { maxPreparedOfCaller, maxPreparedOfTeam } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { ArtifactSharing } from '@runyard/contract/runs/artifacts';
import type { PrepareAttachmentsResponse } from '@runyard/contract/runs/prepared-attachments';
import { apiPrefix } from '@runyard/contract/wire/route';
import type { Logger } from 'pino';
import type { z } from 'zod';
import { signUrl } from '../../platform/secrets/signed-urls.ts';
import { invalid, notFound, Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { serve, serveOnce } from '../../team/access/serve.ts';
import { readLatestRunId } from '../conversations/read.ts';
import type { ExecutionDeps } from '../executions/deps.ts';
import { serveRun, serveRunOnce } from '../executions/run-tokens/sessions.ts';
import { deleteArtifact } from './artifacts/delete.ts';
import { findRunByExternalReference } from './artifacts/external-reference.ts';
import { hasBytes } from './artifacts/preview.ts';
import { findArtifact, hasScreenshot, type StoredArtifact } from './artifacts/read.ts';
import { reportArtifact } from './artifacts/report.ts';
import { type RoomDeps, refuseStatedSize } from './artifacts/room.ts';
import { shareArtifact } from './artifacts/share.ts';
import { type ArtifactDeps, nothingToDownload, toPreview, toResponse } from './artifacts/to-answer.ts';
import { prepareAttachments } from './attachments/prepare.ts';
import { reportChanges } from './changes/report.ts';
import { beginHandoff } from './handoffs/begin.ts';
import { artifactUploadTarget, attachmentUploadTarget, blobTarget, snapshotUploadTarget } from './signed-targets.ts';

type FileRouteDeps = ArtifactDeps & RoomDeps & { readonly log: Logger; readonly executionDeps: ExecutionDeps };

/** The routes of artifacts, attachments, changes and handoffs. The routes in `edges/http/files.ts` carry their bytes. */
export const fileRoutes = (deps: FileRouteDeps): readonly ServedRoute[] => [
  ...artifactRoutes(deps),
  ...reportRoutes(deps),
  ...preparedRoutes(deps),
];

/** Routes that read, download, preview, share and delete artifacts, and find the run that reported a reference. */
function artifactRoutes(deps: FileRouteDeps): readonly ServedRoute[] {
  const { db } = deps;

  /** A caller without a key can see only public artifacts; a caller with a key can also see the artifacts of its team. */
  const findReadable = async (principal: Principal | null, artifactUid: string): Promise<StoredArtifact | Refusal> => {
    const artifact = await findArtifact(db, artifactUid);
    if (artifact && (artifact.isPublic || artifact.teamId === principal?.teamId)) return artifact;
    if (principal) return notFound('artifact');
    return refuse('authentication_required', {
      detail: 'The artifact is not public: send the header Authorization: Bearer <key>.',
    });
  };

  const share = async (principal: Principal, uid: string, isPublic: boolean): Promise<ArtifactSharing | Refusal> => {
    const outcome = await shareArtifact(db, principal, uid, isPublic);
    switch (outcome.kind) {
      case 'not_found':
        return notFound('artifact');
      case 'nothing_to_read':
        return nothingToDownload(outcome);
      case 'done': {
        if (!isPublic) return { artifact_uid: uid, is_public: false };
        const read = `${deps.baseUrl()}${apiPrefix}/agent/artifacts/${uid}`;
        return {
          artifact_uid: uid,
          is_public: true,
          public_url: outcome.type === 'PLAN' ? read : `${read}/download`,
        };
      }
    }
  };

  return [
    serve(routes.getArtifact, async ({ params, principal }) => {
      const artifact = await findReadable(principal, params.artifactUid);
      return artifact instanceof Refusal ? artifact : toResponse(deps, artifact, principal);
    }),

    serve(routes.downloadArtifact, async ({ params, principal }) => {
      const artifact = await findReadable(principal, params.artifactUid);
      if (artifact instanceof Refusal) return artifact;
      if (artifact.type === 'PLAN') {
        const read = `${deps.baseUrl()}${apiPrefix}/agent/artifacts/${artifact.id}`;
        return refuse('operation_not_supported', { status: 400, detail: `A plan is not a file: read it at ${read}.` });
      }
      if (artifact.blobKey === null) return nothingToDownload(artifact);
      return { location: signUrl(deps.signing, deps.filesUrl(), blobTarget('artifact', artifact.id)).url };
    }),

    serve(routes.getArtifactPreview, async ({ params, principal }) => {
      const artifact = await findReadable(principal, params.artifactUid);
      if (artifact instanceof Refusal) return artifact;
      if (!hasBytes(artifact)) return nothingToDownload(artifact);
      return (await toPreview(deps, artifact)) ?? notFound('artifact');
    }),

    serve(routes.downloadConversationScreenshot, async ({ params, principal }) => {
      if (!(await hasScreenshot(db, principal.teamId, params))) return notFound('screenshot');
      return { location: signUrl(deps.signing, deps.filesUrl(), blobTarget('artifact', params.artifactUid)).url };
    }),

    serve(routes.deleteArtifact, async ({ params, principal }) => {
      const wasThere = await deleteArtifact(deps, principal, params.artifactUid);
      return wasThere ? { success: true as const } : notFound('artifact');
    }),

    serve(routes.shareArtifact, ({ params, principal }) => share(principal, params.artifactUid, true)),
    serve(routes.unshareArtifact, ({ params, principal }) => share(principal, params.artifactUid, false)),

    serve(routes.findRunByExternalReference, async ({ query, principal }) => {
      const runId = await findRunByExternalReference(db, principal.teamId, query.url);
      return runId === null ? notFound('reference') : { run_id: runId };
    }),
  ];
}

/** Routes with which an agent reports artifacts, changed files, and the files of a snapshot. The agent uploads the bytes afterwards. */
const reportRoutes = (deps: FileRouteDeps): readonly ServedRoute[] => [
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

type Files = readonly { readonly filename: string; readonly mime_type: string }[];

/** Routes with which callers prepare the upload of files for a follow-up. */
const preparedRoutes = (deps: FileRouteDeps): readonly ServedRoute[] => {
  const prepare = async (
    tx: Queryable,
    principal: Principal,
    runId: string,
    files: Files,
  ): Promise<readonly string[] | Refusal> => {
    const outcome = await prepareAttachments(tx, principal, runId, files);
    switch (outcome.kind) {
      case 'prepared':
        return outcome.ids;
      case 'not_found':
        return notFound('run');
      case 'full': {
        const most = outcome.of === 'caller' ? `You have ${maxPreparedOfCaller}` : `The team has ${maxPreparedOfTeam}`;
        return refuse('resource_unavailable', {
          detail: `${most} prepared files that no follow-up has used. Send follow-ups with them; unused files are deleted after a day.`,
          headers: { 'retry-after': '60' },
        });
      }
    }
  };

  const answer = (ids: readonly string[], files: Files): PrepareAttachmentsResponse => ({
    attachments: ids.map((id, index) => {
      const { url } = signUrl(deps.signing, deps.baseUrl(), attachmentUploadTarget(id));
      const headers = { 'Content-Type': files[index]?.mime_type ?? 'application/octet-stream' };
      return { attachment_id: id, upload_url: url, upload_target: { url, method: 'PUT', headers, fields: [] } };
    }),
  });

  return [
    serveOnce(routes.prepareRunAttachments, {
      work: (tx, { principal, params, body }) => prepare(tx, principal, params.runId, body.files),
      answer: (ids, { body }) => answer(ids, body.files),
    }),

    serveOnce(routes.prepareConversationAttachments, {
      work: async (tx, { principal, params, body }) => {
        const { conversationId } = params;
        const runId = isUuid(conversationId) ? await readLatestRunId(tx, principal.teamId, conversationId) : undefined;
        return runId === undefined ? notFound('conversation') : await prepare(tx, principal, runId, body.files);
      },
      answer: (ids, { body }) => answer(ids, body.files),
    }),
  ];
};
