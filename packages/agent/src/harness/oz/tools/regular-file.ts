import { constants, open } from 'node:fs/promises';
import { openRegularFile } from '../../../open-regular-file.ts';

/** Maximum size of a file that this tool reads. The model must read larger files with shell commands. */
const maxFileBytes = 4 * 1024 * 1024;

/** Returns the text of a file of at most 4 MB. If the file is larger, the error says how the model can read a part of the file. */
export async function readTextFile(path: string): Promise<string> {
  const { file, size } = await openRegularFile(path, { follows: true });
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
