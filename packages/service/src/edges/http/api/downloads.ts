/** Downloads by signed URLs, and downloads of the payloads of webhook deliveries. */
import { Readable } from 'node:stream';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { notFound, refuse } from '../../../platform/serving/refusal.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { findTranscriptRuns, hasTranscript, streamTranscript } from '../../../runs/conversations/transcript.ts';
import { hasBytes, readPreview } from '../../../runs/files/artifacts/preview.ts';
import { findArtifact } from '../../../runs/files/artifacts/read.ts';
import { findHandoffFile } from '../../../runs/files/handoffs/read.ts';
import { type BlobKind, blobTarget } from '../../../runs/files/signed-targets.ts';
import { readWebhookDelivery } from '../../../triggers/webhooks/log/deliveries.ts';
import { readWebhook } from '../../../triggers/webhooks/webhooks.ts';
import { addRoute } from '../server/add-route.ts';
import { refuseSignature } from '../server/authorize.ts';
import type { ServiceDeps, StoreParts } from '../server/deps.ts';
import { downloadHeaders, previewHeaders, sendContent, sendFile, sendStream } from '../server/download.ts';
import { isForFiles } from '../server/files-origin.ts';

/** Registers `GET /blobs/{kind}/{id}`. */
export function registerBlobRoutes(
  app: FastifyInstance,
  deps: Pick<ServiceDeps, 'db' | 'blobs' | 'settings' | 'signing' | 'baseUrl'>,
): void {
  const { db, blobs, settings } = deps;
  addRoute(app, routes.getBlob, async ({ params, query, request, reply }) => {
    const { kind, id } = params;
    const refused = refuseSignature(deps, blobTarget(kind as BlobKind, id), query);
    if (refused) return refused;
    if (kind === 'artifact') {
      const artifact = await findArtifact(db, id);
      if (!artifact?.blobKey || artifact.sizeBytes === null) return notFound('artifact');
      const { filename, mime_type } = artifact.data as { filename?: string; mime_type?: string };
      const contentType = mime_type ?? 'application/octet-stream';
      const { blobKey: key, sizeBytes, sha256 } = artifact;
      const fileName = filename ?? `screenshot.${contentType.split(/[/;+]/)[1]}`;
      return (await sendFile(reply, blobs, { key, sizeBytes, sha256, fileName, contentType }))
        ? reply
        : notFound('artifact');
    }
    if (kind === 'preview') {
      const artifact = await findArtifact(db, id);
      const preview = artifact && hasBytes(artifact) && (await readPreview(blobs, artifact));
      if (!preview || preview.kind === 'none') return notFound('preview');
      const isFrame = preview.kind === 'frame';
      // Scripts in an agent's markup would run on the origin of the service's pages, so browsers only download the file.
      if (isFrame && !isForFiles(request, settings.RUNYARD_FILES_URL)) return notFound('preview');
      const blob = await blobs.get(artifact.blobKey, { start: 0, end: preview.shownBytes - 1 });
      if (!blob) return notFound('preview');
      previewHeaders(reply, preview.contentType, isFrame ? new URL(deps.baseUrl()).origin : undefined);
      return sendStream(reply.header('content-length', preview.shownBytes), blob.stream);
    }
    if (kind === 'handoff') {
      const file = await findHandoffFile(db, id);
      if (!file) return notFound('file');
      const { blobKey: key, sizeBytes, filename: fileName } = file;
      const contentType = file.mimeType ?? 'application/octet-stream';
      return (await sendFile(reply, blobs, { key, sizeBytes, fileName, contentType })) ? reply : notFound('file');
    }
    const runIds = await findTranscriptRuns(db, kind === 'transcript' ? 'run' : 'conversation', id);
    if (runIds.length === 0 || !(await hasTranscript(db, runIds))) return notFound('transcript');
    downloadHeaders(reply, `transcript-${id}.ndjson`, 'application/x-ndjson');
    return sendStream(reply, Readable.from(streamTranscript(db, blobs, runIds)));
  });
}

/** Registers the download of a payload. */
export function registerWebhookPayloadRoutes(app: FastifyInstance, { db }: Pick<StoreParts, 'db'>): void {
  addRoute(app, routes.getWebhookDeliveryPayload, async ({ principal: { teamId }, params, reply }) => {
    const { factoryUid, webhookUid, deliveryId } = params;
    const webhook = await readWebhook(db, { teamId, factoryUid, webhookUid });
    if (!webhook) return notFound('webhook');
    const found = isUuid(deliveryId) && (await readWebhookDelivery(db, webhook.uid, deliveryId));
    if (!found) return notFound('delivery');
    if (!found.payload)
      return refuse('resource_not_found', {
        detail:
          'The delivery has no stored payload. Payloads are stored only for accepted deliveries, and old payloads are deleted to make room.',
      });
    downloadHeaders(reply, `${deliveryId}.json`, 'application/octet-stream');
    await sendContent(reply, found.payload);
    return reply;
  });
}
