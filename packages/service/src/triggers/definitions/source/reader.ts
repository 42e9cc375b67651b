/** Reads the files of definitions from the code host. Limits how many repositories are read at the same time. */
import type { Repository } from '@runyard/contract/environments/repositories';
import type { FactorySyncFault } from '@runyard/contract/factories/factory-sources';
import type { DefinitionFile } from '@runyard/definitions/read-files';
import type { RunActor } from '../../../team/access/actor.ts';
import type { CodeHosts } from '../../../team/code-hosts/code-hosts.ts';
import { makeGate } from '../../../team/skills/gate.ts';
import { Unreadable } from '../../../team/skills/git/run-git.ts';
import { openRemote } from '../../../team/skills/git/upload-pack.ts';
import { readSourceFiles } from './read-files.ts';

/** Where a definition is, and the person with whose credentials it is read. */
export interface Place {
  readonly teamId: string;
  readonly creator: RunActor;
  readonly repository: Repository;
  /** Null: the default branch. */
  readonly branch: string | null;
  readonly folder: string;
}

/**
 * `known`: the caller already knows the present commit of the branch, so no file was read. `foundAt`: the clone URL after redirects.
 */
export type SourceRead =
  | {
      readonly kind: 'files';
      readonly foundAt: URL;
      readonly commit: string;
      readonly files: readonly DefinitionFile[];
    }
  | { readonly kind: 'known'; readonly foundAt: URL; readonly commit: string }
  | {
      readonly kind: 'faulty';
      readonly foundAt: URL;
      readonly commit: string;
      readonly errors: readonly FactorySyncFault[];
    }
  | { readonly kind: 'unreadable'; readonly message: string };

export interface SourceReader {
  /** Reads the files of the present commit of the branch. Does not read them if `isKnown` returns true for this commit. */
  read(place: Place, signal: AbortSignal, isKnown?: (commit: string) => Promise<boolean>): Promise<SourceRead>;
}

export interface ReaderOptions {
  readonly codeHosts: Pick<CodeHosts, 'urlOf' | 'credentialFor'>;
  /** Folder on this machine in which repositories are stored while they are read. */
  readonly folder: string;
  /** How long reading one repository may take, in milliseconds. */
  readonly readMs?: number;
  /** Largest size of the pack of a commit, in bytes. */
  readonly maxPackBytes?: number;
}

const limits = { total: 4, perTeam: 2, waitingPerTeam: 10, waitMs: 10_000 };

/** Creates a reader. Opens no connection before the first call of `read`. */
export function openSourceReader({ codeHosts, folder, readMs = 25_000, maxPackBytes }: ReaderOptions): SourceReader {
  const gate = makeGate(limits);
  return {
    read: async (place, signal, isKnown = async () => false) => {
      const { teamId, creator, repository, branch } = place;
      const clone = codeHosts.urlOf(repository);
      const outcome = await gate
        .run({ teamId, key: clone.href }, async (): Promise<SourceRead> => {
          const chosen = await codeHosts.credentialFor({ teamId, actor: creator }, repository);
          if (chosen.kind === 'unusable' || chosen.kind === 'unavailable')
            return { kind: 'unreadable', message: chosen.message };
          const within = AbortSignal.any([signal, AbortSignal.timeout(readMs)]);
          const size = maxPackBytes === undefined ? {} : { maxPackBytes };
          const remote = await openRemote({ repository, clone, chosen, signal: within, ...size });
          const commit = await remote.readHead(branch ?? undefined);
          const foundAt = remote.base;
          if (await isKnown(commit)) return { kind: 'known', foundAt, commit };
          const read = await readSourceFiles({ remote, commit, folder: place.folder, parent: folder, signal: within });
          if (!read.ok) return { kind: 'faulty', foundAt, commit, errors: toSyncFaults(read.faults) };
          return { kind: 'files', foundAt, commit, files: read.files };
        })
        .catch((error: unknown): SourceRead => {
          if (error instanceof Unreadable) return { kind: 'unreadable', message: error.message };
          throw error;
        });
      if (outcome !== 'busy') return outcome;
      return {
        kind: 'unreadable',
        message: 'Too many repositories are being read at the moment. Try again in a minute.',
      };
    },
  };
}

/** Returns faults in the form of the API. */
export const toSyncFaults = (
  faults: readonly (Omit<FactorySyncFault, 'path'> & { readonly file: string })[],
): FactorySyncFault[] => faults.map(({ file, ...fault }) => ({ path: file, ...fault }));
