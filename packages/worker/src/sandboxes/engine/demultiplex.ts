import { PassThrough, type Readable } from 'node:stream';

/**
 * Length of the header before each piece of output. It has the number of the stream, three zeros and the length of the piece
 * (docs.docker.com/reference/api/engine, "Stream format").
 */
const headerBytes = 8;

/**
 * Returns standard output and standard error of a container as one stream, in order. `source` is the connection that is attached to
 * the container. `head`: bytes that arrived before the connection was passed to this function.
 */
export function outputsOf(source: Readable, head: Buffer): Readable {
  const output = new PassThrough();
  let header = Buffer.alloc(0);
  let rest = 0;
  const take = (chunk: Buffer): boolean => {
    let wants = true;
    for (let at = 0; at < chunk.length; ) {
      if (rest > 0) {
        const piece = chunk.subarray(at, at + rest);
        at += piece.length;
        rest -= piece.length;
        wants = output.write(piece);
        continue;
      }
      const missing = chunk.subarray(at, at + headerBytes - header.length);
      header = Buffer.concat([header, missing]);
      at += missing.length;
      if (header.length < headerBytes) break;
      rest = header.readUInt32BE(4);
      header = Buffer.alloc(0);
    }
    return wants;
  };
  const end = (): void => void output.end();
  take(head);
  source.on('data', (chunk: Buffer) => {
    if (take(chunk)) return;
    source.pause();
    output.once('drain', () => source.resume());
  });
  source.once('end', end).once('close', end).once('error', end);
  return output;
}
