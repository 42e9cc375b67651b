/** The default branch of a repository and its commit. */
export interface Head {
  /** 40 hexadecimal digits. */
  readonly commit: string;
  readonly branch: string;
}

/** A branch whose name git cannot take for an option or a revision, in any argument. */
const plainBranch = /^refs\/heads\/([A-Za-z0-9_][A-Za-z0-9_./+@#-]{0,199})$/;

/**
 * Reads the beginning of the answer to `info/refs` (gitprotocol-http, "Smart Clients"): a line with the service, a flush, and the
 * line `COMMIT HEAD\0CAPABILITIES`, each with its length in front. Null: there is no such line, or HEAD is not a branch.
 */
export function headOf(advertisement: string): Head | null {
  const found = /^001e# service=git-upload-pack\n0000[0-9a-f]{4}([0-9a-f]{40}) HEAD\0([^\n]*)\n/.exec(advertisement);
  const target = / symref=HEAD:(\S+)/.exec(` ${found?.[2] ?? ''}`)?.[1];
  const branch = plainBranch.exec(target ?? '')?.[1];
  const commit = found?.[1];
  return commit && branch && !branch.includes('..') ? { commit, branch } : null;
}
