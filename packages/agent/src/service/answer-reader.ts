import { AnswerTooLarge } from './errors.ts';

/** An answer of the service, with its whole body. */
export interface WholeAnswer {
  readonly status: number;
  /** Value of the header `retry-after`. */
  readonly retryAfter: string | undefined;
  readonly body: Buffer;
}

/**
 * Reads one HTTP/1.1 answer (RFC 9112) from the bytes of a connection. The relay sends each body with a length or in chunks. An answer
 * with neither is an error, because its body would end with the connection, and an incomplete body would look complete.
 */
export interface AnswerReader {
  /**
   * Reads the next bytes. Returns the answer when it is complete. `isReusable` is true if the connection can carry another request.
   * Throws if the bytes are not an HTTP answer or the body is too large.
   */
  read(bytes: Buffer): { readonly answer: WholeAnswer; readonly isReusable: boolean } | undefined;
}

const longestHead = 64 * 1024;
const longestChunkLine = 1024;

interface Head {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
}

/** Returns a reader for one answer. `maxBytes` returns, for the status of the answer, the maximum size of the body. */
export function answerReader(maxBytes: (status: number) => number): AnswerReader {
  let bytes: Buffer = Buffer.alloc(0);
  let head: Head | undefined;
  const body: Buffer[] = [];
  let size = 0;
  /**
   * Number of bytes that are still missing of the body or of the current chunk. Undefined: the next line of a chunked body is the size of a
   * chunk.
   */
  let left: number | undefined;
  let isAfterLastChunk = false;

  const line = (longest: number): string | undefined => {
    const end = bytes.indexOf('\r\n');
    if (end < 0 && bytes.length <= longest) return undefined;
    if (end < 0 || end > longest) throw new Error('the answer has a line that is too long');
    const text = bytes.toString('latin1', 0, end);
    bytes = bytes.subarray(end + 2);
    return text;
  };

  const take = (count: number): void => {
    const part = bytes.subarray(0, count);
    bytes = bytes.subarray(part.length);
    size += part.length;
    const most = maxBytes(head?.status ?? 0);
    if (size > most) throw new AnswerTooLarge(`the answer is larger than ${most} bytes`);
    body.push(part);
  };

  /** Returns true once the whole body was read. */
  const readBody = ({ headers }: Head): boolean => {
    if (headers.get('transfer-encoding') === undefined) {
      const length = headers.get('content-length') ?? '';
      if (!/^\d{1,15}$/.test(length)) throw new Error('the answer has no valid length');
      left ??= Number(length);
      const before = bytes.length;
      take(left);
      left -= before - bytes.length;
      return left === 0;
    }
    for (;;) {
      if (left === undefined) {
        const text = line(longestChunkLine);
        if (text === undefined) return false;
        if (isAfterLastChunk) {
          // After the last chunk, header lines may follow (trailers). An empty line ends them and the answer.
          if (text === '') return true;
          continue;
        }
        if (!/^[0-9a-f]{1,8}(;|$)/i.test(text)) throw new Error('the answer has a chunk without a size');
        left = Number.parseInt(text, 16);
        if (left === 0) {
          isAfterLastChunk = true;
          left = undefined;
          continue;
        }
      }
      const before = bytes.length;
      take(left);
      left -= before - bytes.length;
      if (left > 0 || bytes.length < 2) return false;
      if (line(0) !== '') throw new Error('the answer has a chunk that is too long');
      left = undefined;
    }
  };

  return {
    read(more) {
      bytes = bytes.length === 0 ? more : Buffer.concat([bytes, more]);
      while (head === undefined) {
        const end = bytes.indexOf('\r\n\r\n');
        if (end < 0 && bytes.length <= longestHead) return undefined;
        if (end < 0) throw new Error('the answer has a head that is too long');
        const parsed = parseHead(bytes.toString('latin1', 0, end));
        bytes = bytes.subarray(end + 4);
        // Skip informational answers (status below 200), which come before the real answer (RFC 9110 section 15.2).
        if (parsed.status >= 200) head = parsed;
      }
      const { status, headers } = head;
      if (status !== 204 && status !== 304 && !readBody(head)) return undefined;
      return {
        answer: { status, retryAfter: headers.get('retry-after'), body: Buffer.concat(body) },
        isReusable: bytes.length === 0 && headers.get('connection')?.toLowerCase() !== 'close',
      };
    },
  };
}

function parseHead(text: string): Head {
  const [first = '', ...lines] = text.split('\r\n');
  const status = /^HTTP\/1\.1 (\d{3})( |$)/.exec(first)?.[1];
  if (status === undefined) throw new Error('the answer is not HTTP/1.1');
  const headers = new Map<string, string>();
  for (const each of lines) {
    const colon = each.indexOf(':');
    headers.set(each.slice(0, colon).toLowerCase(), each.slice(colon + 1).trim());
  }
  return { status: Number(status), headers };
}
