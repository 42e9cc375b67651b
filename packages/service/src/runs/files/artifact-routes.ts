import { routes } from '@runyard/contract/routes';
import type { ArtifactPreview, ArtifactResponse, ArtifactSharing } from '@runyard/contract/runs/artifacts';
import type { Settings } from '@runyard/contract/settings/settings';
import { apiPrefix } from '@runyard/contract/wire/route';
import type { Logger } from 'pino';
import { signUrl } from '../../platform/secrets/signed-urls.ts';
import type { Signer } from '../../platform/secrets/signer.ts';
import { notFound, Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { BlobStore } from '../../platform/store/blobs/blobs.ts';
import type { Database } from '../../platform/store/database/database.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { serve } from '../../team/access/serve.ts';
import { deleteArtifact } from './artifacts/delete.ts';
import { findRunByExternalReference } from './artifacts/external-reference.ts';
import { hasBytes, readPreview, type StoredFile } from './artifacts/preview.ts';
import { findArtifact, findSource, hasScreenshot, type StoredArtifact } from './artifacts/read.ts';
import { shareArtifact } from './artifacts/share.ts';
import { blobTarget } from './signed-targets.ts';

interface ArtifactRouteDeps {
  readonly db: Database;
  readonly blobs: BlobStore;
  readonly log: Logger;
  readonly signing: Signer;
  readonly settings: Pick<Settings, 'RUNYARD_FILES_URL'>;
  baseUrl(): string;
  filesUrl(): string;
}

/** Routes that read, download, preview, share and delete artifacts, and find the run that reported a reference. */
export function artifactRoutes(deps: ArtifactRouteDeps): readonly ServedRoute[] {
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
        return refuse('operation_not_supported', { status: 400, detail: `A plan is no file: read it at ${read}.` });
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

const nothingToDownload = ({ type }: Pick<StoredArtifact, 'type'>) =>
  refuse('operation_not_supported', {
    status: 400,
    detail: `An artifact of type ${type} has nothing to read or download.`,
  });

/** Returns how a page can show the file; undefined if the bytes of the file were deleted. */
async function toPreview(deps: ArtifactRouteDeps, artifact: StoredFile): Promise<ArtifactPreview | undefined> {
  const preview = await readPreview(deps.blobs, artifact);
  if (!preview) return undefined;
  const size = { size_bytes: artifact.sizeBytes };
  if (preview.kind === 'none') return { kind: 'none', ...size, reason: preview.reason };
  const { RUNYARD_FILES_URL: filesUrl } = deps.settings;
  if (preview.kind === 'frame' && filesUrl === undefined)
    return {
      kind: 'none',
      ...size,
      reason: 'HTML and SVG can run scripts, and the service has no origin for files (RUNYARD_FILES_URL).',
    };
  const origin = preview.kind === 'frame' ? (filesUrl ?? '') : '';
  const { url, expiresAt } = signUrl(deps.signing, origin, blobTarget('preview', artifact.id));
  const { kind, contentType, shownBytes } = preview;
  return { kind, url, expires_at: expiresAt, content_type: contentType, ...size, shown_bytes: shownBytes };
}

async function toResponse(
  deps: ArtifactRouteDeps,
  artifact: StoredArtifact,
  principal: Principal | null,
): Promise<ArtifactResponse | Refusal> {
  const { id, type, createdAt, sizeBytes, sha256 } = artifact;
  const data = artifact.data as Record<string, string | undefined>;
  const isOwn = principal?.teamId === artifact.teamId;
  const base = {
    artifact_uid: id,
    created_at: createdAt,
    ...(isOwn && artifact.isPublic ? { is_public: true as const } : {}),
  };
  const links = async () => {
    const source = isOwn ? await findSource(deps.db, id) : undefined;
    if (source === undefined) return {};
    const run_url = `${deps.baseUrl()}/runs/${source.runId}`;
    return { source_links: { run_url, pull_request_urls: source.pullRequestUrls } };
  };
  const optional = (...names: string[]) =>
    Object.fromEntries(names.map((name) => [name, data[name]]).filter(([, value]) => value !== undefined));
  const download = () => {
    const { url, expiresAt } = signUrl(deps.signing, deps.filesUrl(), blobTarget('artifact', id));
    return {
      content_type: data.mime_type ?? 'application/octet-stream',
      download_url: url,
      expires_at: expiresAt,
      ...(sha256 === null ? {} : { sha256: sha256.toString('hex') }),
    };
  };
  switch (type) {
    case 'FILE': {
      const place = isOwn ? optional('filepath') : {};
      const size = sizeBytes === null ? {} : { size_bytes: sizeBytes };
      const file = {
        ...download(),
        filename: data.filename ?? id,
        ...place,
        ...size,
        ...optional('description', 'title'),
      };
      return { artifact_type: type, ...base, ...(await links()), data: file };
    }
    case 'SCREENSHOT':
      return {
        artifact_type: type,
        ...base,
        ...(await links()),
        data: { ...download(), ...optional('description') },
      };
    case 'PLAN': {
      const documentUid = data.document_uid ?? id;
      const plan = {
        content: data.content ?? '',
        content_type: 'text/markdown',
        document_uid: documentUid,
        notebook_uid: data.notebook_uid ?? documentUid,
        ...optional('title', 'url'),
      };
      return { artifact_type: type, ...base, data: plan };
    }
    default:
      return nothingToDownload(artifact);
  }
}
