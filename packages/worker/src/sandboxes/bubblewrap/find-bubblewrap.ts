import { constants } from 'node:fs';
import { access } from 'node:fs/promises';

/** Fixed paths instead of PATH, because this program has all rights of the worker. */
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
