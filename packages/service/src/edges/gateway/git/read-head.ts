import { type ReadHead, readPushHead } from '../../../runs/repositories/pushes/read-commands.ts';
import type { Peekable } from './peekable.ts';

/** Largest size of the commands of a push with the largest number of branches, and of push options. */
const maxHeadBytes = 256 * 1024;

/**
 * Reads the commands at the beginning of a push. Each further look waits for twice as many bytes. Without this, a sandbox that sends single
 * bytes would make the service read the beginning again for each byte. A push has a pack behind its commands, or ends.
 */
export async function readHead(peeked: Pick<Peekable, 'read'>): Promise<ReadHead> {
  let bytes = await peeked.read(1);
  let read = readPushHead(bytes);
  while (read.kind === 'more' && bytes.length < maxHeadBytes) {
    const more = await peeked.read(bytes.length * 2);
    if (more.length === bytes.length) break;
    bytes = more;
    read = readPushHead(bytes);
  }
  return read;
}
