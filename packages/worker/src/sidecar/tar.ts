/** Tar archives whose bytes depend on nothing but their entries (POSIX.1-1988 ustar, pubs.opengroup.org "pax", "ustar Interchange Format"). */

const blockBytes = 512;

export interface TarEntry {
  /** Relative path; folders end with `/`. At most 100 bytes. */
  readonly name: string;
  /** Permission bits. */
  readonly mode: number;
  readonly content: { readonly bytes: Uint8Array } | { readonly link: string } | 'folder';
}

/** Returns the header of an entry. Owner is root, and the time is 0. */
function header(entry: TarEntry): Buffer {
  const { name, mode, content } = entry;
  const link = typeof content === 'object' && 'link' in content ? content.link : '';
  if (Buffer.byteLength(name) > 100 || Buffer.byteLength(link) > 100)
    throw new Error(`the path ${name} is too long for the archive`);
  const block = Buffer.alloc(blockBytes);
  const octal = (value: number, at: number, length: number): void => {
    block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1');
  };
  const size = typeof content === 'object' && 'bytes' in content ? content.bytes.length : 0;
  block.write(name, 0);
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(0, 136, 12);
  block.write(content === 'folder' ? '5' : 'link' in content ? '2' : '0', 156, 'latin1');
  block.write(link, 157);
  block.write('ustar\x0000', 257, 'latin1');
  block.write('root', 265, 'latin1');
  block.write('root', 297, 'latin1');
  // The sum is made with spaces in its own place.
  block.fill(' ', 148, 156);
  block.write(
    `${block
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
    'latin1',
  );
  return block;
}

/** Yields the archive of entries, in their order. */
export function* tarOf(entries: Iterable<TarEntry>): Generator<Uint8Array> {
  for (const entry of entries) {
    yield header(entry);
    if (typeof entry.content !== 'object' || !('bytes' in entry.content)) continue;
    const { bytes } = entry.content;
    yield bytes;
    const rest = bytes.length % blockBytes;
    if (rest > 0) yield Buffer.alloc(blockBytes - rest);
  }
  yield Buffer.alloc(2 * blockBytes);
}
