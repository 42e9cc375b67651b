import { maxAttachmentBytes, maxAttachments } from '@runyard/contract/limits';
import type { AttachmentInput, FollowupAttachment, RunAgentRequest } from '@runyard/contract/runs/run-request';
import { overLimit } from '@runyard/contract/wire/byte-size';
import type { Fault } from '../../../platform/fault.ts';

/** A file that a request contains, with its decoded bytes. */
export interface DecodedAttachment {
  readonly fileName: string;
  readonly mimeType: string;
  readonly bytes: Buffer;
}

/** Returns false for a file that was uploaded before the request. */
const hasBytes = (file: FollowupAttachment): file is AttachmentInput => file.attachment_id === undefined;

/** Bytes that are encoded at once. Divisible by 3, so that the encoded parts follow each other without padding. */
const encodedAtOnce = 48 * 1024;

/**
 * Returns whether `text` is the base64 of `bytes` (RFC 4648, 3.5 and 4). Buffer skips characters that are not base64, so the text was
 * base64 only if encoding the bytes returns the same text. They are encoded in parts, because a copy of all texts would need as much
 * memory as the body of the request.
 */
function isBase64Of(bytes: Buffer, text: string): boolean {
  if (text.length !== Math.ceil(bytes.length / 3) * 4) return false;
  for (let at = 0; at < bytes.length; at += encodedAtOnce) {
    if (!text.startsWith(bytes.toString('base64', at, at + encodedAtOnce), (at / 3) * 4)) return false;
  }
  return true;
}

/**
 * Decodes the attachments of a request. Older clients send them in `images`, without names. Returns a fault for each attachment that is not
 * base64 or is too large, and a fault if there are too many attachments.
 */
export function decodeAttachments(request: {
  readonly attachments?: readonly FollowupAttachment[] | undefined;
  readonly images?: RunAgentRequest['images'];
}): {
  attachments: DecodedAttachment[];
  faults: Fault[];
} {
  const faults: Fault[] = [];
  const attachments: DecodedAttachment[] = [];
  const images = (request.images ?? []).map((image, index) => ({
    ...image,
    file_name: `image-${index + 1}.${image.mime_type.split(/[/;+]/)[1] ?? 'bin'}`,
  }));
  const sent: [string, AttachmentInput][] = [
    ...(request.attachments ?? []).flatMap((file, index): [string, AttachmentInput][] =>
      hasBytes(file) ? [[`attachments.${index}`, file]] : [],
    ),
    ...images.map((file, index): [string, AttachmentInput] => [`images.${index}`, file]),
  ];
  if (sent.length > maxAttachments) {
    faults.push({ path: 'attachments', message: `at most ${maxAttachments} together with images` });
  }
  for (const [path, file] of sent) {
    const bytes = Buffer.from(file.data, 'base64');
    if (!isBase64Of(bytes, file.data)) {
      faults.push({
        path: `${path}.data`,
        message: 'must be base64 (RFC 4648, section 4) with its padding and no line breaks',
      });
    } else if (bytes.length > maxAttachmentBytes) {
      faults.push({
        path: `${path}.data`,
        message: `is too large: ${overLimit(bytes.length, maxAttachmentBytes)} decoded`,
      });
    } else {
      attachments.push({ fileName: file.file_name, mimeType: file.mime_type, bytes });
    }
  }
  return { attachments, faults };
}
