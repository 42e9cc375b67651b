/** Makes the first messages of TLS clients, both valid and invalid. */
export interface HelloParts {
  /** Host names in the extension `server_name`. If it is absent, the message does not have this extension. */
  readonly names?: readonly string[];
  /** Further extensions, by type. */
  readonly extensions?: readonly (readonly [type: number, data: Buffer])[];
  /** Length of each record. Default: the whole message is one record. */
  readonly recordBytes?: number;
}

const uint16 = (value: number): Buffer => Buffer.from([value >> 8, value & 255]);
const sized = (data: Buffer): Buffer => Buffer.concat([uint16(data.length), data]);

export function clientHello({ names, extensions = [], recordBytes = 16_384 }: HelloParts): Buffer {
  const list = names?.map((name) => Buffer.concat([Buffer.from([0]), sized(Buffer.from(name, 'latin1'))]));
  const all = [...(list ? [[0, sized(Buffer.concat(list))] as const] : []), ...extensions];
  const body = Buffer.concat([
    ...[
      Buffer.from([3, 3]),
      Buffer.alloc(32, 7),
      Buffer.from([0]),
      sized(Buffer.from([0x13, 0x01])),
      Buffer.from([1, 0]),
    ],
    sized(Buffer.concat(all.map(([type, data]) => Buffer.concat([uint16(type), sized(data)])))),
  ]);
  const message = Buffer.concat([Buffer.from([1, body.length >> 16]), uint16(body.length & 0xffff), body]);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += recordBytes)
    records.push(Buffer.from([22, 3, 1]), sized(message.subarray(at, at + recordBytes)));
  return Buffer.concat(records);
}
