import { constants, type FileHandle, open } from 'node:fs/promises';

/** Maximum size of a file that this tool reads. The model must read larger files with shell commands. */
const maxFileBytes = 4 * 1024 * 1024;

/** Opens a regular file for reading. Does not wait for a named pipe or a device. */
async function openRegular(path: string): Promise<{ file: FileHandle; size: number }> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const stat = await file.stat().catch(async (error) => {
    await file.close();
    throw error;
  });
  if (stat.isFile()) return { file, size: stat.size };
  await file.close();
  throw new Error(`${path} is ${stat.isDirectory() ? 'a folder' : 'not a regular file'}`);
}

/** Returns the text of a file of at most 4 MB. If the file is larger, the error says how the model can read a part of the file. */
export async function readTextFile(path: string): Promise<string> {
  const { file, size } = await openRegular(path);
  try {
    if (size > maxFileBytes)
      throw new Error(`${path} is ${size} bytes; read a part of it with the shell (head, tail, sed -n)`);
    const bytes = await file.readFile();
    if (bytes.subarray(0, 8192).includes(0)) throw new Error(`${path} is a binary file of ${size} bytes`);
    return bytes.toString('utf8');
  } finally {
    await file.close();
  }
}

/** Writes a whole file. */
export async function writeTextFile(path: string, text: string): Promise<void> {
  const file = await open(
    path,
    constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NONBLOCK,
    0o644,
  );
  try {
    await file.writeFile(text);
  } finally {
    await file.close();
  }
}
