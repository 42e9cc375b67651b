import { mkdirSync } from 'node:fs';
import { Failure } from '../exits/failure.ts';

/** Makes the data folder and its folder for logs. @throws Failure if a file exists at the path of a folder, or if the user may not write there */
export function makeFolders(folder: { readonly path: string; readonly logs: string }): void {
  try {
    for (const each of [folder.path, folder.logs]) mkdirSync(each, { recursive: true, mode: 0o700 });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === 'EEXIST' || code === 'ENOTDIR' ? 'a file is in its place' : message;
    throw new Failure(`cannot make the data folder ${folder.path}: ${reason}. RUNYARD_DATA_DIR names another one`);
  }
}
