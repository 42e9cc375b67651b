/**
 * Decides how a page may show a file of an agent. The first bytes of the file decide, because the agent chooses the name and the media type
 * and may choose wrong ones.
 */
import { maxFramePreviewBytes, maxImagePreviewBytes, maxTextPreviewBytes } from '@runyard/contract/limits';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { StoredArtifact } from './read.ts';

/**
 * How a page may show a file. `image` and `text`: anywhere. `frame`: HTML or SVG, only in a sandboxed frame from another origin. `none`:
 * not at all, with the reason.
 */
export type PreviewKind =
  | { readonly kind: 'image' | 'text' | 'frame'; readonly contentType: string; readonly shownBytes: number }
  | { readonly kind: 'none'; readonly reason: string };

/** Number of bytes at the beginning of a file that decide its type. */
const headBytes = 4 * 1024;

const startsWith = (head: Buffer, text: string, at = 0): boolean =>
  head.subarray(at, at + text.length).equals(Buffer.from(text, 'latin1'));

/** Returns the media type of an image; SVG does not count, because it can run scripts. */
function imageType(head: Buffer): string | undefined {
  if (startsWith(head, '\x89PNG\r\n\x1a\n')) return 'image/png';
  if (startsWith(head, '\xff\xd8\xff')) return 'image/jpeg';
  if (startsWith(head, 'GIF87a') || startsWith(head, 'GIF89a')) return 'image/gif';
  return startsWith(head, 'RIFF') && startsWith(head, 'WEBP', 8) ? 'image/webp' : undefined;
}

function isText(head: Buffer): boolean {
  if (head.includes(0)) return false;
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(head, { stream: true });
    return true;
  } catch {
    return false;
  }
}

/** Returns the media type under which a browser would execute the markup of a file; undefined if the file does not look like markup. */
function markupType(name: string, mimeType: string): string | undefined {
  if (/^image\/svg\+xml\b/i.test(mimeType) || /\.svg$/i.test(name)) return 'image/svg+xml';
  return /^(text\/html|application\/xhtml\+xml)\b/i.test(mimeType) || /\.x?html?$/i.test(name)
    ? 'text/html; charset=utf-8'
    : undefined;
}

const none = (reason: string): PreviewKind => ({ kind: 'none', reason });

/** Decides by the first bytes of a file, the size of the file, and the media type that the agent stated. */
export function previewOf(
  head: Buffer,
  { name, mimeType, sizeBytes }: { readonly name: string; readonly mimeType: string; readonly sizeBytes: number },
): PreviewKind {
  if (sizeBytes === 0) return none('The file is empty.');
  const image = imageType(head);
  if (image !== undefined)
    return sizeBytes > maxImagePreviewBytes
      ? none('The image is too large.')
      : { kind: 'image', contentType: image, shownBytes: sizeBytes };
  if (!isText(head)) return none('The file is neither an image nor text.');
  const markup = markupType(name, mimeType);
  if (markup === undefined)
    return {
      kind: 'text',
      contentType: 'text/plain; charset=utf-8',
      shownBytes: Math.min(sizeBytes, maxTextPreviewBytes),
    };
  return sizeBytes > maxFramePreviewBytes
    ? none('The file is too large.')
    : { kind: 'frame', contentType: markup, shownBytes: sizeBytes };
}

/** A file whose bytes are stored. */
export type StoredFile = StoredArtifact & { readonly blobKey: string; readonly sizeBytes: number };

export const hasBytes = (artifact: StoredArtifact): artifact is StoredFile =>
  artifact.blobKey !== null && artifact.sizeBytes !== null;

/** Reads the first bytes of a file and decides how it can be shown; undefined if its bytes were deleted. */
export async function readPreview(blobs: BlobStore, artifact: StoredFile): Promise<PreviewKind | undefined> {
  const blob = await blobs.get(artifact.blobKey, { start: 0, end: headBytes - 1 });
  if (!blob) return undefined;
  const pieces: Uint8Array[] = [];
  for await (const piece of blob.stream) pieces.push(piece as Uint8Array);
  const { filename = '', mime_type: mimeType = '' } = artifact.data as { filename?: string; mime_type?: string };
  return previewOf(Buffer.concat(pieces), { name: filename, mimeType, sizeBytes: artifact.sizeBytes });
}
