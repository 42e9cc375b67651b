import type { AgentAttachment } from '@runyard/contract/agent/agent-inbox';
import type { FollowUp } from '../service/inbox.ts';
import type { WrittenAttachment } from '../workspace/attachments.ts';

/** The files of follow-ups in the workspace. */
export interface FollowUpFiles {
  /**
   * Writes the files of a follow-up once, although they may be needed twice: an answer whose files were written can become a separate turn.
   * After a failure the next call tries again.
   */
  written(followUp: FollowUp): Promise<readonly WrittenAttachment[]>;
  /** Removes a follow-up that is not needed again. */
  forget(followUp: FollowUp): void;
}

/** `write` puts files into the workspace, under names that do not exist there yet. */
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
