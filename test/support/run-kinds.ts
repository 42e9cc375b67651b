import type { RunItem } from '@runyard/contract/runs/runs';

/** A runbook. */
export const runbook = { model_id: 'runbook' } as const;
/** The AI SDK loop against a fake model. */
export const oneModel = { model_id: 'anthropic/claude-opus-4-5' } as const;

/** Prompts and configurations that make the two built-in harnesses run a command. */
export const runKinds = [
  { kind: 'runbook', config: runbook, say: (command: string) => `\`\`\`sh\n${command}\n\`\`\`` },
  { kind: 'model', config: oneModel, say: (command: string) => `Please run \`${command}\`.` },
];

/** Only a follow-up leaves this state. */
export const hasEnded = ({ state }: RunItem): boolean => ['SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED'].includes(state);
