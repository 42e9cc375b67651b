/** Reads the first message of TLS (RFC 8446 section 4.1.2), which names the host in the extension `server_name` (RFC 6066 section 3). */

export type HelloReading =
  /** The message is incomplete. The caller reads it again when it has `needs` bytes. */
  | { readonly kind: 'incomplete'; readonly needs: number }
  | { readonly kind: 'not_tls' }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'hello'; readonly name: string | undefined; readonly hasEch: boolean };

/** Maximum length of an accepted message. For comparison: a message with post-quantum keys has about 2 KB. */
const maxHelloBytes = 16 * 1024;
/** Maximum length of all records together that carry one message. */
const maxRecordBytes = 32 * 1024;

const handshakeRecord = 22;
const clientHello = 1;
const serverName = 0;
/**
 * Extensions with an encrypted host name: Encrypted Client Hello (0xfe0d), its drafts, and its predecessor Encrypted SNI (IANA registry
 * of TLS extensions).
 */
const hiddenNames = new Set([0xfe08, 0xfe09, 0xfe0a, 0xfe0b, 0xfe0c, 0xfe0d, 0xffce]);

const malformed = { kind: 'malformed' } as const;

/**
 * Reads the ClientHello at the beginning of `bytes`; the message may span several records. If the message is incomplete, `needs` counts all
 * missing bytes that are already known, and not only the bytes of the next record. Otherwise a client that sends records of one byte would
 * make the proxy parse the message again for each record.
 */
export function readClientHello(bytes: Buffer): HelloReading {
  const parts: Buffer[] = [];
  let length = 0;
  /** Length of the whole message. Until the header of the message has been read, this is only the length of the header. */
  let total = 4;
  let isTotalKnown = false;
  let at = 0;
  while (at <= maxRecordBytes) {
    const wrong = at === 0 ? ({ kind: 'not_tls' } as const) : malformed;
    if (bytes.length > at && bytes[at] !== handshakeRecord) return wrong;
    if (bytes.length > at + 1 && bytes[at + 1] !== 3) return wrong;
    const missing = total - length;
    if (bytes.length < at + 5) return { kind: 'incomplete', needs: at + 5 + missing };
    const size = bytes.readUInt16BE(at + 3);
    if (size === 0 || size > maxHelloBytes) return malformed;
    if (bytes.length < at + 5 + size)
      return { kind: 'incomplete', needs: at + 5 + (size < missing ? 5 + missing : size) };
    parts.push(bytes.subarray(at + 5, at + 5 + size));
    length += size;
    at += 5 + size;
    if (!isTotalKnown && length >= 4) {
      const head = Buffer.concat(parts);
      total += head.readUIntBE(1, 3);
      isTotalKnown = true;
      if (head[0] !== clientHello || total > maxHelloBytes) return malformed;
    }
    if (length > total) return malformed;
    if (isTotalKnown && length === total) return readHello(Buffer.concat(parts).subarray(4));
  }
  return malformed;
}

/** Parses the body of the message. The message is malformed if a length points beyond the end of the body. */
function readHello(body: Buffer): HelloReading {
  try {
    // Version and random.
    let at = 34;
    at += 1 + body.readUInt8(at);
    at += 2 + body.readUInt16BE(at);
    at += 1 + body.readUInt8(at);
    if (at === body.length) return { kind: 'hello', name: undefined, hasEch: false };
    if (at + 2 + body.readUInt16BE(at) !== body.length) return malformed;
    at += 2;
    const seen = new Set<number>();
    let name: string | undefined;
    while (at < body.length) {
      const type = body.readUInt16BE(at);
      const end = at + 4 + body.readUInt16BE(at + 2);
      if (end > body.length || seen.has(type)) return malformed;
      seen.add(type);
      if (type === serverName) name = readName(body.subarray(at + 4, end));
      at = end;
    }
    return { kind: 'hello', name, hasEch: [...seen].some((type) => hiddenNames.has(type)) };
  } catch {
    return malformed;
  }
}

/** Returns the host name in the extension. Throws if the extension does not contain exactly one host name. */
function readName(data: Buffer): string {
  const length = data.readUInt16BE(3);
  if (data.readUInt16BE(0) !== data.length - 2 || data.readUInt8(2) !== 0 || length !== data.length - 5 || length === 0)
    throw new RangeError('not one host name');
  return data.toString('latin1', 5);
}
