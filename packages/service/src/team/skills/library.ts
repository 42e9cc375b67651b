/** Reads the skills of repositories from the code host, and caches them in this process. */
import type { Repository } from '@runyard/contract/environments/repositories';
import type { CodeHosts } from '../code-hosts/code-hosts.ts';
import type { ChosenCredential } from '../code-hosts/credential.ts';
import { makeCache } from './cache.ts';
import { type Gate, makeGate } from './gate.ts';
import { Unreadable, type UnreadableKind } from './git/run-git.ts';
import { openRemote, type RemoteRepository } from './git/upload-pack.ts';
import { type ListedSkill, readBundle, readSkills, type SkillBundle } from './read-repository.ts';
import { type SkillSpec, specText } from './spec.ts';

/** A repository, and the credential of the reader. Content that was read with one credential is never returned for another credential. */
export interface ReadableRepository {
  readonly teamId: string;
  readonly repository: Repository;
  readonly chosen: ChosenCredential;
}

export interface NotReadable {
  readonly kind: 'unreadable';
  readonly why: UnreadableKind;
  readonly message: string;
}

export type SkillList = { readonly kind: 'skills'; readonly skills: readonly ListedSkill[] } | NotReadable;

/** `unfit`: the skill does not exist or cannot be used. */
export type SkillOutcome =
  | { readonly kind: 'skill'; readonly commit: string; readonly skill: SkillBundle }
  | { readonly kind: 'unfit'; readonly message: string }
  | NotReadable;

export interface SkillLibrary {
  /** Lists the skills of a repository. The list is at most five minutes old; if `refresh` is true, the list is read now. */
  list(from: ReadableRepository, refresh: boolean): Promise<SkillList>;
  /** Reads the present version of a skill. */
  read(from: ReadableRepository, spec: SkillSpec): Promise<SkillOutcome>;
}

export interface LibraryOptions {
  readonly codeHosts: Pick<CodeHosts, 'urlOf'>;
  /** Folder for repositories while they are read. */
  readonly folder: string;
  /** Milliseconds. */
  readonly now?: () => number;
  readonly gate?: Gate;
  /** Time limit for reading one repository. */
  readonly readMs?: number;
  /** Maximum size of the pack of a commit. */
  readonly maxPackBytes?: number;
}

const listedMs = 5 * 60_000;
/** Time after which a repository that could not be read is tried again. */
const unreadableMs = 30_000;
/** For this time, the commit of a branch is not requested again, so that runs that begin together share one request. */
const headMs = 3_000;
const mb = 1024 * 1024;
const defaultGate = { total: 3, perTeam: 2, waitingPerTeam: 100, waitMs: 30_000 };

interface Listed {
  readonly list: SkillList;
  readonly commit: string | null;
  readonly until: number;
}

export function openSkillLibrary(options: LibraryOptions): SkillLibrary {
  const { codeHosts, folder, now = Date.now, gate = makeGate(defaultGate), readMs = 25_000, maxPackBytes } = options;
  const lists = makeCache<Listed>(48 * mb);
  const bundles = makeCache<SkillBundle | string>(32 * mb);
  const heads = makeCache<{ readonly commit: string; readonly until: number }>(mb);
  const inFlight = new Map<string, Promise<unknown>>();

  /** Does the same work only once for all callers that request it at the same time. */
  function together<T>(name: string, work: () => Promise<T>): Promise<T> {
    const begun = inFlight.get(name) as Promise<T> | undefined;
    if (begun !== undefined) return begun;
    const made = work().finally(() => inFlight.delete(name));
    inFlight.set(name, made);
    return made;
  }

  interface Opened {
    readonly remote: RemoteRepository;
    readonly signal: AbortSignal;
  }

  async function reading<T>(from: ReadableRepository, read: (opened: Opened) => Promise<T>): Promise<T | NotReadable> {
    const { repository, chosen, teamId } = from;
    if (chosen.kind === 'unusable') return notReadable('refused', chosen.message);
    if (chosen.kind === 'unavailable') return notReadable('unavailable', chosen.message);
    const clone = codeHosts.urlOf(repository);
    const work = async (): Promise<T | NotReadable> => {
      const signal = AbortSignal.timeout(readMs);
      try {
        const remote = await openRemote({
          repository,
          clone,
          chosen,
          signal,
          ...(maxPackBytes === undefined ? {} : { maxPackBytes }),
        });
        return await read({ remote, signal });
      } catch (error) {
        if (error instanceof Unreadable) return notReadable(error.kind, error.message);
        throw error;
      }
    };
    const outcome = await gate.run({ teamId, key: clone.href }, work);
    if (outcome !== 'busy') return outcome;
    return notReadable('unavailable', 'Too many repositories are being read at the moment. Try again in a minute.');
  }

  async function headOf(name: string, remote: RemoteRepository): Promise<string> {
    const known = heads.get(name);
    if (known !== undefined && known.until > now()) return known.commit;
    const commit = await remote.readHead();
    heads.set(name, { commit, until: now() + headMs }, name.length + 100);
    return commit;
  }

  async function listNow(from: ReadableRepository, name: string): Promise<SkillList> {
    const known = lists.get(name);
    const fresh = await reading(from, async ({ remote, signal }): Promise<Listed> => {
      const commit = await remote.readHead();
      if (known?.commit === commit) return { ...known, until: now() + listedMs };
      const skills = await readSkills({ remote, commit, parent: folder, signal });
      return { list: { kind: 'skills', skills }, commit, until: now() + listedMs };
    });
    const listed = 'list' in fresh ? fresh : { list: fresh, commit: null, until: now() + unreadableMs };
    lists.set(name, listed, name.length + bytesOf(listed.list));
    return listed.list;
  }

  return {
    list: async (from, refresh) => {
      const name = nameOf(from);
      const known = lists.get(name);
      if (!refresh && known !== undefined && known.until > now()) return known.list;
      const task = `list ${name}`;
      // Do not share a read that began before this request, because it may have seen an older commit.
      if (refresh) await inFlight.get(task)?.catch(() => undefined);
      return await together(task, () => listNow(from, name));
    },
    read: async (from, spec) => {
      const name = nameOf(from);
      const place = specText(spec);
      return await together(`read ${name} ${place}`, async () => {
        const head = heads.get(name);
        const cached = head && head.until > now() ? bundles.get(`${name} ${head.commit} ${place}`) : undefined;
        if (head !== undefined && cached !== undefined) return outcomeOf(head.commit, cached);
        return await reading(from, async ({ remote, signal }) => {
          const commit = await headOf(name, remote);
          const key = `${name} ${commit} ${place}`;
          const bundle = bundles.get(key) ?? (await readBundle({ remote, commit, parent: folder, signal }, spec));
          bundles.set(key, bundle, key.length + JSON.stringify(bundle).length);
          return outcomeOf(commit, bundle);
        });
      });
    },
  };
}

const notReadable = (why: UnreadableKind, message: string): NotReadable => ({ kind: 'unreadable', why, message });

const outcomeOf = (commit: string, bundle: SkillBundle | string): SkillOutcome =>
  typeof bundle === 'string' ? { kind: 'unfit', message: bundle } : { kind: 'skill', commit, skill: bundle };

/**
 * Returns the name of an entry in the caches. The name contains the id of the credential: a credential that was deleted and stored again
 * has another id.
 */
function nameOf({ repository: { owner, repo }, chosen, teamId }: ReadableRepository): string {
  const credential =
    chosen.kind === 'credential' ? chosen.id : chosen.kind === 'none' ? 'none' : `${chosen.kind} ${teamId}`;
  return `${credential} ${owner}/${repo}`;
}

const bytesOf = (list: SkillList): number => JSON.stringify(list).length + 1000;
