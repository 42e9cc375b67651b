import { constants } from 'node:fs';
import { access } from 'node:fs/promises';

/** bwrap is looked for at these fixed paths and not in PATH, because a wrong program would run with all rights of the worker. */
const places = ['/usr/bin/bwrap', '/usr/local/bin/bwrap', '/bin/bwrap'];

/** Returns the path of bwrap, or `undefined` if it is not installed. */
export async function findBubblewrap(): Promise<string | undefined> {
  for (const place of places) {
    const found = await access(place, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return place;
  }
  return undefined;
}
