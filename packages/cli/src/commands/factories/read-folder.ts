/** Reads the definition files of a folder. */
import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import path from 'node:path';
import { isDefinitionFile, isDefinitionFolder, placeOf } from '@runyard/contract/factories/files/layout';
import { maxDefinitionFileBytes, maxDefinitionFiles } from '@runyard/contract/limits';
import type { DefinitionFile } from '@runyard/definitions/read-files';
import { Failure } from '../../exits/failure.ts';

/** Maximum number of folder levels below the definition's folder. Deeper folders are refused. */
const maxDepth = 12;

/**
 * Returns `factory.yaml` and the other files in its folder that may belong to a definition. Skips files of other programs. Stops
 * reading a file as soon as it is larger than allowed.
 */
export function readDefinitionFolder(folder: string): DefinitionFile[] {
  const files: DefinitionFile[] = [];
  for (const entry of list(folder)) {
    if (entry.isDirectory()) {
      if (isDefinitionFolder(entry.name)) readInto(files, folder, entry.name, 1);
    } else if (isDefinitionFile(entry.name)) files.push(readOne(folder, entry.name, entry.isFile()));
  }
  return files;
}

function readInto(files: DefinitionFile[], folder: string, within: string, depth: number): void {
  if (depth > maxDepth) throw new Failure(`${within}: has folders more than ${maxDepth} levels deep`);
  for (const entry of list(path.join(folder, within))) {
    // Reads one file more than a definition may have, so that the check of the definition reports too many files.
    if (files.length > maxDefinitionFiles) return;
    const relative = `${within}/${entry.name}`;
    if (entry.isDirectory()) readInto(files, folder, relative, depth + 1);
    else if (placeOf(relative).kind !== 'other') files.push(readOne(folder, relative, entry.isFile()));
  }
}

function list(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true }).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw new Failure(`there is no folder ${folder}`, 2);
    if (code === 'ENOTDIR') throw new Failure(`${folder} is a file; name the folder with the definition files`, 2);
    throw new Failure(`cannot read the folder ${folder}: ${reasonOf(error)}`, 2);
  }
}

/** Reads one file. Refuses links, because they may lead out of the folder, and pipes, because they may never end. */
function readOne(folder: string, relative: string, isFile: boolean): DefinitionFile {
  if (!isFile) throw new Failure(`${relative}: is no regular file; definitions have no links and no devices`);
  try {
    return { path: relative, content: readStart(path.join(folder, relative)) };
  } catch (error) {
    throw new Failure(`cannot read ${relative}: ${reasonOf(error)}`, 2);
  }
}

function readStart(file: string): Uint8Array {
  const handle = openSync(file, 'r');
  try {
    const bytes = new Uint8Array(maxDefinitionFileBytes + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(handle, bytes, length, bytes.length - length, null);
    return bytes.slice(0, length);
  } finally {
    closeSync(handle);
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
