/** The answer to a push: https://git-scm.com/docs/pack-protocol#_report_status */
import { NotGit, readPktLines } from '../../../team/code-hosts/pkt-line.ts';

const line = (content: Buffer): Buffer =>
  Buffer.concat([Buffer.from((content.length + 4).toString(16).padStart(4, '0')), content]);
const flush = Buffer.from('0000');
/** Maximum content of a packet of a side band, without the length and the number of the band. */
const bandBytes = 65_515;
const smallBandBytes = 995;

/**
 * Writes the report on a push that was not forwarded, in the format that the client requested. Returns undefined if the client requested no
 * report. `unpack`: the reason why the whole push failed; absent: only refs are refused.
 */
export function writeReport(
  capabilities: readonly string[],
  refused: Iterable<readonly [ref: string, reason: string]>,
  unpack = 'ok',
): Buffer | undefined {
  if (!capabilities.some((each) => each === 'report-status' || each === 'report-status-v2')) return undefined;
  const lines = [`unpack ${unpack}\n`, ...Array.from(refused, ([ref, reason]) => `ng ${ref} ${reason}\n`)];
  const report = Buffer.concat([...lines.map((text) => line(Buffer.from(text))), flush]);
  const most = capabilities.includes('side-band-64k')
    ? bandBytes
    : capabilities.includes('side-band')
      ? smallBandBytes
      : undefined;
  if (most === undefined) return report;
  const bands: Buffer[] = [];
  for (let at = 0; at < report.length; at += most)
    bands.push(line(Buffer.concat([Buffer.from([1]), report.subarray(at, at + most)])));
  return Buffer.concat([...bands, flush]);
}

/** Maps each ref to the answer of the code host: null means `ok`, and a text is the reason for the refusal. */
export type HostReport = ReadonlyMap<string, string | null>;

/** Maximum size of a report; the report on the largest push is smaller. Text for people does not count. */
const maxReportBytes = 64 * 1024;

/** Reads the code host's report while its answer is forwarded. Buffers at most 64 KB. */
export function watchReport(capabilities: readonly string[]): {
  add(chunk: Buffer): void;
  /** Returns null if there was no report. */
  result(): HostReport | null;
} {
  const hasBands = capabilities.includes('side-band-64k') || capabilities.includes('side-band');
  const buffered: Buffer[] = [];
  let size = 0;
  const keep = (part: Buffer): void => {
    if (size + part.length > maxReportBytes) return;
    size += part.length;
    buffered.push(Buffer.from(part));
  };
  /** State of the present packet: the digits of its length, and the number of bytes that have not arrived yet. */
  let digits = '';
  let left = 0;
  let band = -1;
  let isBroken = false;
  const addBands = (chunk: Buffer): void => {
    for (let at = 0; at < chunk.length && !isBroken; ) {
      if (left === 0) {
        digits += String.fromCharCode(chunk[at++] ?? 0);
        if (digits.length < 4) continue;
        const length = /^[0-9a-f]{4}$/i.test(digits) ? Number.parseInt(digits, 16) : -1;
        digits = '';
        isBroken = length < 0;
        left = Math.max(length - 4, 0);
        band = -1;
      } else if (band < 0) {
        band = chunk[at++] ?? 0;
        left -= 1;
      } else {
        const part = chunk.subarray(at, at + left);
        if (band === 1) keep(part);
        at += part.length;
        left -= part.length;
      }
    }
  };
  return {
    add: (chunk) => (hasBands ? addBands(chunk) : keep(chunk)),
    result: () => readReport(Buffer.concat(buffered)),
  };
}

function readReport(bytes: Buffer): HostReport | null {
  const report = new Map<string, string | null>();
  let unpack: string | undefined;
  try {
    for (const each of readPktLines(bytes)) {
      if (typeof each === 'string') break;
      const text = each.toString('utf8').replace(/\n$/, '');
      const [, word, ref = '', reason = ''] = /^(ok|ng) (\S+)(?: (.*))?$/s.exec(text) ?? [];
      if (text.startsWith('unpack ')) unpack = text.slice('unpack '.length);
      else if (word === 'ok') report.set(ref, null);
      else if (word === 'ng') report.set(ref, reason.slice(0, 300));
    }
  } catch (error) {
    if (!(error instanceof NotGit)) throw error;
  }
  return unpack === undefined ? null : report;
}
