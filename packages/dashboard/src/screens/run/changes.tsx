import type { RunItem } from '@runyard/contract/runs/runs';

/** Shows which files the run has changed. */
export function Changes(_: { run: RunItem; comment: (text: string) => void }) {
  return null;
}
