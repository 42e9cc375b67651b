import { constants, type FileHandle, open, stat } from 'node:fs/promises';

export interface OpenFile {
  readonly file: FileHandle;
  readonly size: number;
}

/** File systems whose files are about the process that opens them, or about the kernel. */
const notOfCommands = ['/proc', '/sys'];

/**
 * Opens a regular file that a command of the run or the model names. Does not wait for a named pipe. Refuses files below /proc and /sys,
 * also if a link leads to them. The agent's process opens the file, so such a file could show data that the kernel hides from the commands,
 * such as the agent's own memory map. `follows` is false if the last segment of the path must not be a link. Throws an error with the code
 * of the system, or with a message that begins with the path.
 */
export async function openRegularFile(path: string, { follows }: { readonly follows: boolean }): Promise<OpenFile> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | (follows ? 0 : constants.O_NOFOLLOW));
  try {
    const found = await file.stat();
    if (!found.isFile())
      throw new Error(
        found.isDirectory()
          ? `${path} is a folder; name a file, or pack the folder into one`
          : `${path} is not a regular file`,
      );
    for (const folder of notOfCommands) {
      const device = await stat(folder).then(
        ({ dev }) => dev,
        () => undefined,
      );
      if (device === found.dev)
        throw new Error(`${path} is a file of the kernel below ${folder}; copy it to another file first`);
    }
    return { file, size: found.size };
  } catch (error) {
    await file.close();
    throw error;
  }
}
