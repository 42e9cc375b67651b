import type { ArtifactPreview, ArtifactResponse } from '@runyard/contract/runs/artifacts';
import type { Settings } from '@runyard/contract/settings/settings';
import { signUrl } from '../../../platform/secrets/signed-urls.ts';
import type { Signer } from '../../../platform/secrets/signer.ts';
import { type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import { blobTarget } from '../signed-targets.ts';
import { readPreview, type StoredFile } from './preview.ts';
import { findSource, type StoredArtifact } from './read.ts';

export interface ArtifactDeps {
  readonly db: Database;
  readonly blobs: BlobStore;
  readonly signing: Signer;
  readonly settings: Pick<Settings, 'RUNYARD_FILES_URL'>;
  baseUrl(): string;
  filesUrl(): string;
}

/** Returns the 400 refusal for an artifact that has no content. */
export const nothingToDownload = ({ type }: Pick<StoredArtifact, 'type'>) =>
  refuse('operation_not_supported', {
    status: 400,
    detail: `An artifact of type ${type} has nothing to read or download.`,
  });

/** Returns how a page can show the file; undefined if the bytes of the file were deleted. */
export async function toPreview(deps: ArtifactDeps, artifact: StoredFile): Promise<ArtifactPreview | undefined> {
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

/** Returns an artifact in the form of the API. Only the team of the artifact gets its place, its links and whether it is public. */
export async function toResponse(
  deps: ArtifactDeps,
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
