import type { AgentAttachment } from '@runyard/contract/agent-protocol';
import type { FollowUp } from '../service/inbox.ts';
import type { WrittenAttachment } from '../workspace/attachments.ts';

/** The files that come with follow-ups, in the workspace. */
export interface FollowUpFiles {
  /** Writes them, once: an answer whose files were written may yet be played as a turn. Tried again after a failure. */
  written(followUp: FollowUp): Promise<readonly WrittenAttachment[]>;
  /** The follow-up will not be asked for again. */
  forget(followUp: FollowUp): void;
}

/** `write` puts files into the workspace, under names that nothing there has. */
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
