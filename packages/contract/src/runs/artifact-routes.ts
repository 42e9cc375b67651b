import { z } from 'zod';
import { leastBodyMb, maxAttachmentBytes, maxChangesPerDay, maxLocatorLength } from '../limits.ts';
import { teamReads, teamWrites } from '../wire/access.ts';
import { DeleteResponse, EmptyResponse } from '../wire/bodies.ts';
import { Text } from '../wire/primitives.ts';
import type { Route } from '../wire/route.ts';
import { ArtifactPreview, ArtifactResponse, ArtifactSharing, RunByExternalReferenceResponse } from './artifacts.ts';

const artifact = z.object({ artifactUid: z.string().meta({ description: 'UID of the artifact' }) });
const errors = {
  400: 'The artifact has no download: pull requests and external references',
  404: 'No such artifact, or it belongs to another team',
};

/** The query of a signed URL. */
const Signature = z.object({
  expires: z.string().meta({ description: 'Unix time in seconds' }),
  signature: z.string().describe('Part of the signed URL; use it unchanged'),
});

export const artifactRoutes = {
  getArtifact: {
    method: 'GET',
    path: '/agent/artifacts/{artifactUid}',
    tag: 'artifacts',
    summary: 'Read an artifact',
    description: 'Public artifacts need no key.',
    allow: { ...teamReads, publicThings: true },
    params: artifact,
    answer: { status: 200, description: 'A signed download URL, or the plan itself', schema: ArtifactResponse },
    errors,
  },
  downloadArtifact: {
    method: 'GET',
    path: '/agent/artifacts/{artifactUid}/download',
    tag: 'artifacts',
    summary: 'Download an artifact',
    description: 'Public artifacts need no key.',
    allow: { ...teamReads, publicThings: true },
    params: artifact,
    answer: { status: 302, description: 'Go to Location', headers: { Location: 'Signed URL, for 15 minutes' } },
    errors,
  },
  getArtifactPreview: {
    method: 'GET',
    path: '/agent/artifacts/{artifactUid}/preview',
    tag: 'artifacts',
    summary: 'Read how a page can show a file',
    description:
      'For files and screenshots. The first bytes decide, not the name or media type that the agent chose. HTML and SVG have a preview only if the service has an origin for files (RUNYARD_FILES_URL).',
    allow: teamReads,
    params: artifact,
    answer: { status: 200, description: 'The kind of the preview, and its URL', schema: ArtifactPreview },
    errors: { 400: 'The artifact has no preview: plans, pull requests and external references', 404: errors[404] },
  },
  putAttachment: {
    method: 'PUT',
    path: '/agent/attachments/{attachmentId}',
    tag: 'runs',
    allow: { anyone: 'with_signature' },
    summary: 'Upload the bytes of a prepared file',
    params: z.object({ attachmentId: z.string().describe('Id of the file; part of the signed URL') }),
    query: Signature,
    bodyType: 'application/octet-stream',
    answer: { status: 200, description: 'Stored', schema: EmptyResponse },
    errors: {
      403: 'The signature is wrong or has expired',
      404: 'A follow-up has used the file, or it was deleted',
      409: 'The artifact already has other bytes',
      413: `More than ${maxAttachmentBytes / 1024 / 1024} MB, or the team has no room for it (RUNYARD_TEAM_STORAGE_MB)`,
      429: 'Other files of the run are being uploaded',
    },
  },
  deleteArtifact: {
    method: 'DELETE',
    path: '/agent/artifacts/{artifactUid}',
    tag: 'artifacts',
    summary: 'Delete an artifact',
    description: 'Its signed URLs stop working at once.',
    allow: teamWrites,
    params: artifact,
    answer: { status: 200, description: 'Deleted', schema: DeleteResponse },
    errors: { 404: errors[404] },
  },
  shareArtifact: {
    method: 'POST',
    path: '/agent/artifacts/{artifactUid}/share',
    tag: 'artifacts',
    summary: 'Let everyone read an artifact',
    description: 'Everyone with its UID can read and download it without a key. Doing it twice is not an error.',
    allow: teamWrites,
    params: artifact,
    answer: { status: 200, description: 'It is public', schema: ArtifactSharing },
    errors: {
      400: 'The artifact has no content to read: pull requests and external references',
      404: errors[404],
      429: `The team has made ${maxChangesPerDay} changes today (UTC)`,
    },
  },
  unshareArtifact: {
    method: 'DELETE',
    path: '/agent/artifacts/{artifactUid}/share',
    tag: 'artifacts',
    summary: 'Let only the team read an artifact',
    description: 'Download URLs that were given out before work for up to 15 minutes.',
    allow: teamWrites,
    params: artifact,
    answer: { status: 200, description: 'It is not public', schema: ArtifactSharing },
    errors: { 404: errors[404] },
  },
  findRunByExternalReference: {
    method: 'GET',
    path: '/agent/run-by-external-reference',
    tag: 'artifacts',
    summary: 'Find the run that reported an external reference',
    description:
      'Compared in canonical form: scheme and host in lower case, without default port, fragment and trailing slash. The newest run where several reported it.',
    allow: teamReads,
    query: z.object({
      url: Text.min(1)
        .max(maxLocatorLength)
        .meta({ description: `Locator of the reference, at most ${maxLocatorLength} characters` }),
    }),
    answer: { status: 200, description: 'The run', schema: RunByExternalReferenceResponse },
    errors: {
      400: 'url is missing, empty or too long',
      404: 'No run of the team reported it',
    },
  },
  getBlob: {
    method: 'GET',
    path: '/blobs/{kind}/{id}',
    tag: 'artifacts',
    summary: 'Download the bytes of a signed URL',
    description:
      'Of a transcript always all: a Range is ignored. An artifact has an ETag for `If-Range`, which a client uses to continue a download. If the service redirects to a bucket, the bucket answers in the same way.',
    allow: { anyone: 'with_signature' },
    params: z.object({
      kind: z.string().describe('Kind of the bytes; part of the signed URL'),
      id: z.string().describe('Id of the bytes; part of the signed URL'),
    }),
    query: Signature,
    answer: { status: 200, description: 'The bytes, with the media type of the file', contentType: '*/*' },
    ranges: true,
    redirects: true,
    errors: { 403: 'The signature is wrong or has expired', 404: 'The object was deleted' },
  },
  putArtifactContent: {
    method: 'PUT',
    path: '/harness-support/uploads/{artifactUid}',
    tag: 'harness',
    summary: 'Upload the bytes of a reported artifact',
    description: `One request with all bytes, also of a file of many gigabytes. It may take any time if at least ${leastBodyMb} MB arrive in each five minutes. After a lost connection, send all bytes again. With \`Content-Digest: sha-256=:…:\` (RFC 9530), other bytes are refused.`,
    allow: { anyone: 'with_signature' },
    params: artifact,
    query: Signature,
    bodyType: 'application/octet-stream',
    answer: { status: 200, description: 'Stored; the artifact exists', schema: EmptyResponse },
    errors: {
      403: 'The signature is wrong or has expired',
      400: 'The bytes do not have the digest of Content-Digest',
      404: 'The artifact was deleted',
      409: 'Its bytes were already uploaded',
      413: 'Larger than RUNYARD_ARTIFACT_MB; or, together with the other artifacts of the run, larger than RUNYARD_RUN_ARTIFACTS_MB; or, together with everything that the team stores, larger than RUNYARD_TEAM_STORAGE_MB',
    },
  },
} as const satisfies Record<string, Route>;
