/** A fake name server (RFC 1035) on a free UDP port of loopback. It knows a few addresses and does not answer queries for silent names. */
import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';
import { isIPv4 } from 'node:net';

export interface FakeNameServer {
  /** `127.0.0.1:PORT` */
  readonly address: string;
  /** All received queries, as `NAME A` or `NAME AAAA`. */
  readonly questions: readonly string[];
  close(): Promise<void>;
}

const types: Readonly<Record<number, string>> = { 1: 'A', 28: 'AAAA' };

/** Returns the name in the question that begins at byte 12, and the end of the question. */
function readName(query: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += length + 1;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 5 };
}

/** Starts the name server. `addresses` has the addresses by name; other names do not exist. A query gets no answer if `isSilent` returns true. */
export async function startFakeNameServer(
  addresses: Readonly<Record<string, readonly string[]>>,
  isSilent: (name: string) => boolean = () => false,
): Promise<FakeNameServer> {
  const socket = createSocket('udp4');
  const questions: string[] = [];
  socket.on('message', (query: Buffer, from: RemoteInfo) => {
    const { name, end } = readName(query);
    const type = query.readUInt16BE(end - 4);
    questions.push(`${name} ${types[type] ?? type}`);
    if (isSilent(name)) return;
    const known = addresses[name];
    // No test needs an IPv6 address, so the answer to an AAAA query contains no address.
    const records = type === 1 ? (known ?? []).filter((address) => isIPv4(address)) : [];
    const head = Buffer.alloc(12);
    query.copy(head, 0, 0, 2);
    head.writeUInt16BE(known ? 0x8180 : 0x8183, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(records.length, 6);
    const answers = records.map((address) =>
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]),
    );
    socket.send(Buffer.concat([head, query.subarray(12, end), ...answers]), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    questions,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}
