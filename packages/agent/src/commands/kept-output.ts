/** Keeps the whole output of commands as artifacts, because the conversation has only the head and the tail of a long output. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { maxOutputBytes } from '@runyard/contract/limits';
import { shorten } from '@runyard/contract/wire/shorten';
import { pathOf } from '../artifacts/upload-file.ts';
import { fs } from '../builtin-modules.ts';
import { newId } from '../new-id.ts';
import type { ServiceClient } from '../service/client.ts';
import { type CommandOptions, type CommandResult, runCommand } from './run-command.ts';

export interface KeptOutputOptions {
  readonly client: Pick<ServiceClient, 'reportArtifact' | 'upload'>;
  /** Maximum number of bytes of an output that are kept. */
  readonly maxBytes: number;
  /** Called if a long output could not be kept. */
  readonly onNotKept: (reason: string) => void;
  readonly signal: AbortSignal;
}

/** A command and its action in the conversation. */
export interface KeptCommand {
  readonly actionId: string;
  readonly title: string;
}

/** Runs a command. If the result has only a part of the output, it also names the artifact with the whole output. */
export type RunKept = (options: CommandOptions, command: KeptCommand) => Promise<CommandResult>;

const mimeType = 'text/plain; charset=utf-8';

/** The output of an action of a program that runs its commands itself. */
export interface KeptOutput {
  push(chunk: Buffer): void;
  /**
   * Uploads the output and returns the uid of its artifact; undefined if it could not be kept. `wholeBytes`: the size of the whole output.
   * Then closes the output. Never rejects.
   */
  keep(command: KeptCommand, wholeBytes: number): Promise<string | undefined>;
  /** Removes the output. */
  close(): void;
}

export interface KeptOutputs {
  readonly run: RunKept;
  /** Returns undefined if too many outputs are open. */
  open(): KeptOutput | undefined;
}

/** Maximum number of open outputs of programs that run their commands themselves, because each may fill an eighth of a file system. */
const maxOpen = 4;

export function keptOutputs({ client, maxBytes, onNotKept, signal }: KeptOutputOptions): KeptOutputs {
  let opened = 0;

  async function upload(file: OutputFile, { actionId, title }: KeptCommand, wholeBytes: number): Promise<string> {
    const { fd, bytes } = file.end();
    const data = {
      filename: `output-${actionId}.txt`,
      mime_type: mimeType,
      size_bytes: bytes,
      title: `Output of ${shorten(title, 200)}`,
      output_of_action: actionId,
      ...(bytes < wholeBytes ? { description: `The first ${bytes} of ${wholeBytes} bytes` } : {}),
    };
    const answer = await client.reportArtifact({ artifact_type: 'FILE', data }, { signal });
    const content = () => Readable.from(chunksOf(fd, bytes), { objectMode: false });
    if (answer.upload_url !== undefined)
      await client.upload(pathOf(answer.upload_url), content, bytes, mimeType, { signal });
    return answer.artifact_uid;
  }

  async function keep(file: OutputFile, command: KeptCommand, wholeBytes: number): Promise<string | undefined> {
    // After a cancel, there is no time for an upload.
    if (signal.aborted) return undefined;
    try {
      return await upload(file, command, wholeBytes);
    } catch (error) {
      onNotKept(error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }

  function openFile(): OutputFile {
    const folder = tmpdir();
    return outputFile(folder, Math.min(maxBytes, shareOf(folder)));
  }

  return {
    async run(options, command) {
      const file = openFile();
      try {
        const result = await runCommand({ ...options, onBytes: file.push });
        if (!result.truncated || options.signal?.aborted) return result;
        const outputArtifact = await keep(file, command, result.outputBytes);
        return outputArtifact === undefined ? result : { ...result, outputArtifact };
      } finally {
        file.close();
      }
    },
    open() {
      if (opened >= maxOpen) return undefined;
      opened += 1;
      const file = openFile();
      let isOpen = true;
      function close(): void {
        if (isOpen) opened -= 1;
        isOpen = false;
        file.close();
      }
      return { push: file.push, keep: (...args) => keep(file, ...args).finally(close), close };
    },
  };
}

/**
 * Returns an eighth of the size of the file system that contains the folder for temporary files, in bytes. The file is not in the workspace
 * or home, because a sandbox ends if these are too large.
 */
function shareOf(folder: string): number {
  const { bsize, blocks } = fs.statfsSync(folder);
  return Math.floor((bsize * blocks) / 8);
}

/** Reads synchronously, so that no read is open when the file is closed. */
function* chunksOf(fd: number, bytes: number): Generator<Buffer> {
  for (let position = 0; position < bytes; ) {
    const buffer = Buffer.alloc(Math.min(64 * 1024, bytes - position));
    position += fs.readSync(fd, buffer, 0, buffer.length, position);
    yield buffer;
  }
}

interface OutputFile {
  push(chunk: Buffer): void;
  /** Returns the open file with the beginning of the output, and its size. Throws if the output could not be written. */
  end(): { readonly fd: number; readonly bytes: number };
  close(): void;
}

/**
 * Writes an output into a file as soon as the output is longer than the conversation keeps. The file has no name, so no program of the run
 * can replace it, and the kernel removes it if the agent dies.
 */
function outputFile(folder: string, maxBytes: number): OutputFile {
  const early: Buffer[] = [];
  let bytes = 0;
  let fd: number | undefined;
  let fault: Error | undefined;

  function open(): number {
    const path = join(folder, `.runyard-output-${newId()}`);
    const opened = fs.openSync(path, 'wx+', 0o600);
    fs.unlinkSync(path);
    fd = opened;
    for (const chunk of early.splice(0)) fs.writeSync(opened, chunk);
    return opened;
  }

  function close(): void {
    if (fd !== undefined) fs.closeSync(fd);
    fd = undefined;
  }

  return {
    push(chunk) {
      const part = chunk.subarray(0, maxBytes - bytes);
      if (part.length === 0 || fault !== undefined) return;
      bytes += part.length;
      try {
        if (fd !== undefined) fs.writeSync(fd, part);
        else {
          // Copied, because the buffer of the pipe is used again.
          early.push(Buffer.from(part));
          if (bytes > maxOutputBytes) open();
        }
      } catch (error) {
        // The disk may be full: give the space back to the commands of the run.
        fault = error instanceof Error ? error : new Error(String(error));
        early.length = 0;
        close();
      }
    },
    end() {
      if (fault !== undefined) throw fault;
      return { fd: fd ?? open(), bytes };
    },
    close,
  };
}
