import { constants } from 'node:fs';
import { access } from 'node:fs/promises';

/** Fixed places instead of PATH, because the worker trusts this program with everything. */
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
