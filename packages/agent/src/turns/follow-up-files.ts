import type { AgentAttachment } from '@runyard/contract/agent/agent-inbox';
import type { FollowUp } from '../service/inbox.ts';
import type { WrittenAttachment } from '../workspace/attachments.ts';

/** The files of follow-ups in the workspace. */
export interface FollowUpFiles {
  /**
   * Writes the files of a follow-up, at the first call only. A second call is possible: a follow-up that was read as an answer can become
   * a separate turn. If writing failed, the next call tries again.
   */
  written(followUp: FollowUp): Promise<readonly WrittenAttachment[]>;
  /** Forgets a follow-up that is not needed any more. */
  forget(followUp: FollowUp): void;
}

/** `write` writes files into the workspace under names that do not exist there yet. */
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
