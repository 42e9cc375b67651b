/** The file of a blob folder that names the installation to which the blobs belong. */
import path from 'node:path';
import { createSecretFile, readSecretFile, replaceSecretFile } from '../secret-file.ts';

const fileOf = (folder: string): string => path.join(folder, 'installation');

/** Returns the id of the installation; undefined: the folder has no marker. */
export const readBlobMarker = (folder: string): Promise<string | undefined> => readSecretFile(fileOf(folder));

/** Marks the folder; keeps the marker that it has. Returns the marker that it has afterwards. */
export const createBlobMarker = (folder: string, id: string): Promise<string> => createSecretFile(fileOf(folder), id);

/** Replaces the marker. */
export const replaceBlobMarker = (folder: string, id: string): Promise<void> => replaceSecretFile(fileOf(folder), id);
