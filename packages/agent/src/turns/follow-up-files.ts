import type { AgentAttachment } from '@runyard/contract/agent/agent-inbox';
import type { FollowUp } from '../service/inbox.ts';
import type { WrittenAttachment } from '../workspace/attachments.ts';

/** Writes the attached files of follow-ups into the workspace. */
export interface FollowUpFiles {
  /**
   * Writes the files of a follow-up. A second call for the same follow-up returns the files that are already written: such a call
   * happens if a follow-up that was taken as an answer also becomes a turn. If the first call failed, the next call tries again.
   */
  written(followUp: FollowUp): Promise<readonly WrittenAttachment[]>;
  /** Forgets the files of a follow-up that has been handled. */
  forget(followUp: FollowUp): void;
}

/** Creates the writer of files. `write` writes files into the workspace under names that do not exist there yet. */
export function followUpFiles(
  write: (files: readonly AgentAttachment[]) => Promise<readonly WrittenAttachment[]>,
): FollowUpFiles {
  const known = new Map<string, Promise<readonly WrittenAttachment[]>>();
  return {
    written({ id, attachments = [] }) {
      const earlier = known.get(id);
      if (earlier !== undefined || attachments.length === 0) return earlier ?? Promise.resolve([]);
      const writing = write(attachments);
      known.set(id, writing);
      writing.catch(() => known.delete(id));
      return writing;
    },
    forget({ id }) {
      known.delete(id);
    },
  };
}
