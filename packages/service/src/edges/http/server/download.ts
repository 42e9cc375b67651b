import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { presignedSeconds } from '@runyard/contract/settings/blobs';
import type { FastifyReply } from 'fastify';
import { refuse } from '../../../platform/serving/refusal.ts';
import type { Blob, BlobStore, ByteRange } from '../../../platform/store/blobs/blobs.ts';

/** RFC 6266: an ASCII name for old clients, and the whole name in UTF-8 (RFC 8187). */
function contentDisposition(fileName: string): string {
  const plain = fileName.replaceAll(/[^\x20-\x7e]|["\\%]/g, '_');
  const encoded = encodeURIComponent(fileName.toWellFormed()).replaceAll(
    /['()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

/** Older rows may contain media types that are not ASCII; such a header would make every download fail. */
const isHeaderText = (text: string): boolean => /^[\x20-\x7e]+$/.test(text);

/** Redirects the client to another URL. */
export function redirect(reply: FastifyReply, url: string): FastifyReply {
  return reply.code(302).header('location', url).header('cache-control', 'no-store').send();
}

const [readsHereHeader, readsHere] = ['x-runyard-reads-here', randomUUID()];

/**
 * Headers for requests of this process to itself. They make the answer contain the bytes of a file instead of a redirect. No client knows
 * the value.
 */
export const readHere = { [readsHereHeader]: readsHere };

/** Types that browsers show with scripts. For these files, the bucket sends neither `nosniff` nor a content policy. */
const activeType = /\b(?:[xm]?html|svg|xml|xslt?)\b/i;
const bucketType = (contentType: string): string =>
  isHeaderText(contentType) && !activeType.test(contentType) ? contentType : 'application/octet-stream';

/** Sends a file of an agent for download: its bytes, or a redirect to the bucket with the bytes. Returns false if there is no such blob. */
export async function sendFile(
  reply: FastifyReply,
  blobs: BlobStore,
  { key, sizeBytes, sha256, fileName, contentType }: FileToSend,
): Promise<boolean> {
  const answer = {
    contentType: bucketType(contentType),
    contentDisposition: contentDisposition(fileName),
    seconds: presignedSeconds,
  };
  const isInner = reply.request.headers[readsHereHeader] === readsHere;
  const elsewhere = isInner ? null : await blobs.presign?.(key, answer);
  if (elsewhere) {
    redirect(reply, elsewhere);
    return true;
  }
  // The service and the bucket have different validators, but a client that downloads a file again gets it from the same place.
  if (sha256) reply.header('etag', `"${sha256.toString('hex')}"`);
  return await sendBlob(downloadHeaders(reply, fileName, contentType), blobs, { key, sizeBytes });
}

interface FileToSend {
  readonly key: string;
  readonly sizeBytes: number;
  /** The entity tag of the file, if it is known. */
  readonly sha256?: Buffer | null;
  readonly fileName: string;
  readonly contentType: string;
}

/** Sets headers so that a browser downloads the file of an agent. If the browser still shows the file, it does so in a sandbox. */
export function downloadHeaders(reply: FastifyReply, fileName: string, contentType: string): FastifyReply {
  return reply
    .type(isHeaderText(contentType) ? contentType : 'application/octet-stream')
    .header('content-disposition', contentDisposition(fileName))
    .header('x-content-type-options', 'nosniff')
    .header('content-security-policy', "default-src 'none'; sandbox; frame-ancestors 'none'")
    .header('cross-origin-resource-policy', 'same-site')
    .header('referrer-policy', 'no-referrer')
    .header('cache-control', 'private, no-store');
}

/**
 * Sets headers so that a page can show the file of an agent, but no script in the file runs. `framedBy`: origin of the pages that may show
 * an HTML or SVG file in a frame, with styles and pictures from the file only; undefined if no page may show it.
 */
export function previewHeaders(reply: FastifyReply, contentType: string, framedBy: string | undefined): FastifyReply {
  const policy =
    framedBy === undefined
      ? "default-src 'none'; sandbox; frame-ancestors 'none'"
      : `default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors ${framedBy}`;
  return reply
    .type(contentType)
    .header('content-disposition', 'inline')
    .header('x-content-type-options', 'nosniff')
    .header('content-security-policy', policy)
    .header('cross-origin-resource-policy', framedBy === undefined ? 'same-origin' : 'cross-origin')
    .header('referrer-policy', 'no-referrer')
    .header('cache-control', 'private, no-store');
}

/** Returns the single range of a Range header. null: the header is absent or ignored (RFC 9110, 14.2); `unsatisfiable`: answer 416. */
function readRange(header: string | undefined, sizeBytes: number): ByteRange | null | 'unsatisfiable' {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '');
  if (!match || (match[1] === '' && match[2] === '')) return null;
  const [, first = '', last = ''] = match;
  if (first === '') {
    const length = Math.min(Number(last), sizeBytes);
    return length === 0 ? 'unsatisfiable' : { start: sizeBytes - length, end: sizeBytes - 1 };
  }
  const range = { start: Number(first), end: last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1) };
  if (range.start >= sizeBytes) return 'unsatisfiable';
  return range.end < range.start ? null : range;
}

/**
 * Streams a blob, or the range that the request asks for; returns false if there is no such blob. Throws a 416 refusal if the range
 * contains no byte. Does not return the reply, because an `await` of the reply gives no value after the reply was sent.
 */
export async function sendBlob(
  reply: FastifyReply,
  blobs: BlobStore,
  blob: { readonly key: string; readonly sizeBytes: number },
): Promise<boolean> {
  return await sendRange(reply, blob.sizeBytes, (range) => blobs.get(blob.key, range));
}

/** Sends bytes in the same way as `sendBlob` sends a blob. */
export async function sendContent(reply: FastifyReply, content: Buffer): Promise<boolean> {
  return await sendRange(reply, content.length, async ({ start, end } = { start: 0, end: content.length - 1 }) => ({
    sizeBytes: content.length,
    stream: Readable.from([content.subarray(start, end + 1)], { objectMode: false }),
  }));
}

async function sendRange(
  reply: FastifyReply,
  sizeBytes: number,
  open: (range?: ByteRange) => Promise<Blob | undefined>,
): Promise<boolean> {
  const { range: rangeHeader, 'if-range': ifRange } = reply.request.headers;
  // If the file has another entity tag, or none, the whole file is sent (RFC 9110, 13.1.5).
  const isSame = ifRange === undefined || ifRange === reply.getHeader('etag');
  const range = isSame ? readRange(rangeHeader, sizeBytes) : null;
  reply.header('accept-ranges', 'bytes');
  if (range === 'unsatisfiable') {
    throw refuse('invalid_request', {
      status: 416,
      detail: `None of its ${sizeBytes} bytes is in the range.`,
      headers: { 'content-range': `bytes */${sizeBytes}` },
    });
  }
  const blob = await open(range ?? undefined);
  if (!blob) return false;
  const length = range ? range.end - range.start + 1 : blob.sizeBytes;
  if (range) reply.code(206).header('content-range', `bytes ${range.start}-${range.end}/${blob.sizeBytes}`);
  sendStream(reply.header('content-length', length), blob.stream);
  return true;
}

/** Streams a blob of unknown size as a binary file with this name; returns false if there is no such blob. */
export async function sendBytes(reply: FastifyReply, blobs: BlobStore, key: string, name: string): Promise<boolean> {
  const stored = await blobs.stat(key);
  if (!stored) return false;
  return await sendBlob(downloadHeaders(reply, name, 'application/octet-stream'), blobs, { key, ...stored });
}

/** Sends a stream. A HEAD gets the headers only, and the stream is closed. */
export function sendStream(reply: FastifyReply, stream: Readable): FastifyReply {
  if (reply.request.method !== 'HEAD') return reply.send(stream);
  stream.destroy();
  // Send an empty payload, because fastify would set `Content-Length` to 0 if it got none.
  return reply.send(Readable.from([]));
}
