import { constants, type FileHandle, lstat, mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentAttachment } from '@runyard/contract/agent/agent-inbox';
import { overLimit } from '@runyard/contract/wire/byte-size';
import { imageTypeOf } from '../images/image-type.ts';
import type { PromptImage } from '../images/images.ts';
import { safeNames } from '../safe-names.ts';
import type { ServiceClient } from '../service/client.ts';
import { AnswerTooLarge, ServiceRefusal } from '../service/errors.ts';
import { SetupFailure } from '../setup-failure.ts';

/** Maximum size of a download. The contract allows attachments of only 10 MB, so this limit only protects the agent. */
const maxAttachmentBytes = 32 * 1024 * 1024;

export interface WrittenAttachment {
  path: string;
  name: string;
  mimeType: string;
  size: number;
  image?: PromptImage;
}

/**
 * Downloads attachments into `attachments/` of the workspace, under safe names that do not exist there yet. Throws a
 * `SetupFailure`.
 */
export async function writeAttachments(
  attachments: readonly AgentAttachment[],
  options: { client: Pick<ServiceClient, 'download'>; workspace: string; signal?: AbortSignal },
): Promise<WrittenAttachment[]> {
  const folder = join(options.workspace, 'attachments');
  // Ignore an error here. If `attachments` exists and is not a folder, the next check reports it.
  await mkdir(folder).catch(() => {});
  if (!(await lstat(folder).catch(() => undefined))?.isDirectory())
    throw new SetupFailure(`${folder} is not a folder, so attachments cannot be written there.`);
  const names = safeNames(
    attachments.map((attachment) => attachment.file_name),
    await readdir(folder),
  );
  const written: WrittenAttachment[] = [];
  for (const [index, attachment] of attachments.entries()) {
    const name = names[index] ?? `attachment-${index + 1}`;
    const bytes = await download(attachment, options);
    const path = join(folder, name);
    await writeNew(path, bytes, attachment.file_name);
    const type = imageTypeOf(bytes);
    written.push({
      path,
      name,
      mimeType: type ?? attachment.mime_type,
      size: bytes.length,
      ...(type === undefined ? {} : { image: { path: `attachments/${name}`, type, bytes } }),
    });
  }
  return written;
}

async function download(
  attachment: AgentAttachment,
  { client, signal }: { client: Pick<ServiceClient, 'download'>; signal?: AbortSignal },
): Promise<Buffer> {
  const name = JSON.stringify(attachment.file_name);
  if (attachment.size_bytes > maxAttachmentBytes) {
    throw new SetupFailure(
      `Attachment ${name} is too large: ${overLimit(attachment.size_bytes, maxAttachmentBytes)}. Send it as a link instead.`,
    );
  }
  try {
    const bytes = await client.download(attachment.path, maxAttachmentBytes, { signal });
    if (bytes.length !== attachment.size_bytes) {
      throw new SetupFailure(
        `Attachment ${name} has ${bytes.length} bytes where ${attachment.size_bytes} were announced. Create the run again.`,
      );
    }
    return bytes;
  } catch (error) {
    if (error instanceof ServiceRefusal || error instanceof AnswerTooLarge)
      throw new SetupFailure(`Attachment ${name} could not be downloaded: ${error.message}. Create the run again.`);
    throw error;
  }
}

async function writeNew(path: string, bytes: Buffer, original: string): Promise<void> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o644);
    await file.writeFile(bytes);
  } catch (error) {
    throw new SetupFailure(
      `Attachment ${JSON.stringify(original)} could not be written to ${path}: ${(error as Error).message}`,
    );
  } finally {
    await file?.close();
  }
}
