/** Reads the beginning of a push: https://git-scm.com/docs/pack-protocol#_reference_update_request_and_packfile_transfer */

import { maxBranchesOfPush } from '@runyard/contract/limits';

/**
 * A change of one ref. Ids are lower-case hexadecimal. If `from` is all zeros, the ref is new; if `to` is all zeros, the ref is deleted.
 */
export interface PushCommand {
  readonly from: string;
  readonly to: string;
  /** Full name, such as `refs/heads/main`. */
  readonly ref: string;
}

/** The part of a push before its pack. */
export interface PushHead {
  /** Empty if git only asks, with a single flush packet, whether it may push. */
  readonly commands: readonly PushCommand[];
  readonly capabilities: readonly string[];
  /** True if git also sends options for the code host (`git push -o`). */
  readonly hasOptions: boolean;
  /** Offset of the pack, in bytes. */
  readonly packAt: number;
}

/**
 * `more`: the bytes end too early. `bad`: the gateway does not understand the push; `capabilities` has the capabilities that were read
 * before the fault.
 */
export type ReadHead =
  | { readonly kind: 'head'; readonly head: PushHead }
  | { readonly kind: 'more'; readonly capabilities: readonly string[] }
  | { readonly kind: 'bad'; readonly message: string; readonly capabilities: readonly string[] };

const commandPattern = /^([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) (refs\/[^\s\p{Cc}]{1,250})$/u;
const maxLines = 1_000;
const tooMany = `a push can update at most ${maxBranchesOfPush} branches`;

/** Returns whether an id is all zeros, which means that there is no commit. */
export const isNone = (id: string): boolean => /^0+$/.test(id);

/**
 * Reads the commands from the first bytes of a push. Accepts less than git: if git could parse a line in another way than the gateway, the
 * push is `bad`.
 */
export function readPushHead(bytes: Buffer): ReadHead {
  const commands: PushCommand[] = [];
  let capabilities: readonly string[] = [];
  const bad = (message: string): ReadHead => ({ kind: 'bad', message, capabilities });
  let at = 0;
  /** Returns the next line; null for a flush packet. */
  const next = (): Buffer | null | 'more' | 'bad' => {
    if (at + 4 > bytes.length) return 'more';
    const digits = bytes.toString('latin1', at, at + 4);
    if (digits === '0000') {
      at += 4;
      return null;
    }
    const length = /^[0-9a-f]{4}$/i.test(digits) ? Number.parseInt(digits, 16) : 0;
    if (length < 5) return 'bad';
    if (at + length > bytes.length) return 'more';
    const line = bytes.subarray(at + 4, at + length);
    at += length;
    return line;
  };

  for (let count = 0; ; count += 1) {
    const line = next();
    if (line === 'more') return { kind: 'more', capabilities };
    if (line === 'bad') return bad('the list of refs is not of git');
    if (count > maxLines) return bad(tooMany);
    if (line === null) break;
    const text = line.toString('utf8').replace(/\n$/, '');
    if (/^shallow [0-9a-f]{40,64}$/.test(text)) continue;
    if (text.startsWith('push-cert')) return bad('signed pushes are not supported: push with --no-signed');
    const [command = '', features, ...rest] = text.split('\0');
    if (rest.length > 0 || (features !== undefined) !== (commands.length === 0))
      return bad('the list of refs is not of git');
    if (features !== undefined) capabilities = features.split(' ').filter((each) => each !== '');
    const [, from, to, ref] = commandPattern.exec(command) ?? [];
    if (from === undefined || to === undefined || ref === undefined || from.length !== to.length)
      return bad('a ref has a name or an id that the gateway does not accept');
    if (commands.some((each) => each.ref === ref)) return bad(`${ref} is named twice`);
    commands.push({ from, to, ref });
  }
  let hasOptions = false;
  if (capabilities.includes('push-options')) {
    for (let count = 0; ; count += 1) {
      const line = next();
      if (line === 'more') return { kind: 'more', capabilities };
      if (line === 'bad' || count > maxLines) return bad('the list of push options is not of git');
      if (line === null) break;
      hasOptions = true;
    }
  }
  return { kind: 'head', head: { commands, capabilities, hasOptions, packAt: at } };
}
