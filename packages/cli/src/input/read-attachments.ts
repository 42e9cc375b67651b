import path from 'node:path';
import { maxAttachmentBytes, maxAttachments } from '@runyard/contract/limits';
import type { AttachmentInput } from '@runyard/contract/runs/run-request';
import { overLimit } from '@runyard/contract/wire/byte-size';
import { mimeTypeOf } from '@runyard/contract/wire/mime-types';
import { Failure } from '../exits/failure.ts';
import { readInput } from './input-file.ts';

/** Reads files as attachments of a prompt or a follow-up. @throws Failure that names the file if a file cannot be read or is too large */
export function readAttachments(files: readonly string[] = []): AttachmentInput[] {
  if (files.length > maxAttachments) throw new Failure(`at most ${maxAttachments} files can be attached`);
  return files.map(readAttachment);
}

function readAttachment(file: string): AttachmentInput {
  const bytes = readInput(file);
  if (bytes.length > maxAttachmentBytes) {
    throw new Failure(`${file} is too large to attach: ${overLimit(bytes.length, maxAttachmentBytes)}`);
  }
  return { file_name: path.basename(file), mime_type: mimeTypeOf(file), data: bytes.toString('base64') };
}
