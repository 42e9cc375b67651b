/**
 * The origin of files (RUNYARD_FILES_URL): a separate host name on which the service answers only signed downloads. A script in a file of
 * an agent runs on this origin, so it reaches neither pages nor the API. Browsers send no cookies to this origin.
 */
import { apiPrefix } from '@runyard/contract/wire/route';
import type { FastifyRequest } from 'fastify';
import { refuse } from '../../../platform/serving/refusal.ts';

const downloads = `${apiPrefix}/blobs/`;

/** Returns true if the request came to the origin of files. */
export function isForFiles({ raw }: Pick<FastifyRequest, 'raw'>, filesUrl: string | undefined): boolean {
  return filesUrl !== undefined && raw.headers.host?.toLowerCase() === new URL(filesUrl).host;
}

/** Throws 404 for everything but a download on the origin of files. */
export function refuseOnFilesOrigin(request: Pick<FastifyRequest, 'raw'>, filesUrl: string | undefined): void {
  if (!isForFiles(request, filesUrl) || request.raw.url?.startsWith(downloads)) return;
  throw refuse('resource_not_found', { detail: 'This address serves only downloads with signed URLs.' });
}
