import { z } from 'zod';
import { ArtifactResponse } from '../artifacts.ts';
import type { Route } from '../route.ts';

const artifact = z.object({ artifactUid: z.string().meta({ description: 'UID of the artifact' }) });
const errors = {
  400: 'Nothing to download: pull requests and external references',
  404: 'No such artifact, or it belongs to another team',
};

/** A signed URL's query. */
const Signature = z.object({
  expires: z.string().meta({ description: 'Unix time in seconds' }),
  signature: z.string(),
});

export const artifactRoutes = {
  getArtifact: {
    method: 'GET',
    path: '/agent/artifacts/{artifactUid}',
    tag: 'artifacts',
    summary: 'Read an artifact',
    description: 'Public artifacts need no key.',
    auth: 'optional_key',
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
    auth: 'optional_key',
    params: artifact,
    answer: { status: 302, description: 'Go to Location', headers: { Location: 'Signed URL, for 15 minutes' } },
    errors,
  },
  getBlob: {
    method: 'GET',
    path: '/blobs/{kind}/{id}',
    tag: 'artifacts',
    summary: 'Bytes behind a signed URL',
    auth: 'signature',
    params: z.object({ kind: z.string(), id: z.string() }),
    query: Signature,
    answer: { status: 200, description: 'The bytes', contentType: 'application/octet-stream' },
    errors: { 403: 'The signature is wrong or has expired', 404: 'The object was deleted' },
  },
  putArtifactContent: {
    method: 'PUT',
    path: '/harness-support/uploads/{artifactUid}',
    tag: 'harness',
    summary: 'Upload the bytes of a reported artifact',
    auth: 'signature',
    params: artifact,
    query: Signature,
    bodyType: 'application/octet-stream',
    answer: { status: 200, description: 'Stored; the artifact exists', schema: z.object({}) },
    errors: {
      403: 'The signature is wrong or has expired',
      404: 'The artifact was deleted',
      409: 'Its bytes are there already',
      413: 'Larger than 100 MB',
    },
  },
} as const satisfies Record<string, Route>;
