import { basicAuthorization } from './credential.ts';
import { type AboutRepository, askAbout, type Unanswered } from './default-branch.ts';
import { lineText, NotGit, readPktLines } from './pkt-line.ts';
import { listRefs } from './refs.ts';

/** `aliases`: maps a branch that is only another name (a symbolic ref) to the real branch. */
export type Aliases = { readonly kind: 'aliases'; readonly aliases: ReadonlyMap<string, string> } | Unanswered;

const maxCapabilityBytes = 64 * 1024;
/**
 * Maximum size of the answer. The host lists all branches whose names begin with one of the requested names; the limit allows about 10,000
 * of them.
 */
const maxListBytes = 1024 * 1024;

/**
 * Asks the code host which of these branches are aliases of a branch. A host without version 2 of git's protocol cannot report aliases: the
 * answer has none.
 */
export async function readAliases(about: AboutRepository, branches: readonly string[]): Promise<Aliases> {
  const name = `${about.repository.owner}/${about.repository.repo}`;
  const failed = (how: string): Aliases => ({ kind: 'unavailable', message: `The code host ${how} for ${name}.` });
  const asked = await askAbout(about, 2, maxCapabilityBytes);
  if (asked.kind !== 'answer') return asked;
  if (!speaksVersion2(asked.bytes)) return { kind: 'aliases', aliases: new Map() };
  const { chosen } = about;
  const answer = await listRefs({
    base: asked.base,
    authorization: chosen.kind === 'credential' ? basicAuthorization(chosen.credential) : undefined,
    option: 'symrefs',
    prefixes: branches.map((branch) => `refs/heads/${branch}`),
    signal: asked.signal,
    maxBytes: maxListBytes,
  }).catch(() => null);
  if (answer === null) return failed('did not list the branches in time');
  if (answer.status !== 200) return failed(`answered ${answer.status}`);
  if (answer.isCut) return failed('lists too many branches that begin with the name of a pushed one');
  try {
    return { kind: 'aliases', aliases: aliasesOf(answer.bytes) };
  } catch (error) {
    if (error instanceof NotGit) return failed('gave a list of branches that is not of git');
    throw error;
  }
}

function speaksVersion2(capabilities: Buffer): boolean {
  try {
    for (const line of readPktLines(capabilities))
      if (typeof line !== 'string' && lineText(line) === 'version 2') return true;
  } catch (error) {
    if (!(error instanceof NotGit)) throw error;
  }
  return false;
}

/** Reads the answer to `ls-refs` (gitprotocol-v2): lines `ID REF symref-target:REF`. */
function aliasesOf(list: Buffer): ReadonlyMap<string, string> {
  const aliases = new Map<string, string>();
  for (const line of readPktLines(list)) {
    if (typeof line === 'string') continue;
    const [, alias, target] =
      /^\S+ refs\/heads\/(\S+)(?: \S+)*? symref-target:refs\/heads\/(\S+)/.exec(lineText(line)) ?? [];
    if (alias !== undefined && target !== undefined) aliases.set(alias, target);
  }
  return aliases;
}
