import type { RunItem } from '@runyard/contract/runs/runs';
import { test } from 'vitest';
import { isLong } from './long.ts';

/** A runbook. */
export const runbook = { model_id: 'runbook' } as const;
/** The AI SDK loop against a fake model. */
export const oneModel = { model_id: 'anthropic/claude-opus-4-5' } as const;

/** Prompts and configurations that make the two built-in harnesses run a command. */
export const runKinds = [
  { kind: 'runbook', config: runbook, say: (command: string) => `\`\`\`sh\n${command}\n\`\`\`` },
  { kind: 'model', config: oneModel, say: (command: string) => `Please run \`${command}\`.` },
];

/**
 * Returns the kinds with which a test runs: in `bin/test` one, which is the other one for the next turn. Each harness shows half of the
 * tests then: service and worker do the same for both, and the tests of `packages/agent` show each harness alone. In `bin/test-long` all.
 */
export const kindsOfTurn = (turn: number) =>
  isLong ? runKinds : runKinds.filter((_, index) => index === turn % runKinds.length);

/** Returns the function that adds the tests of one kind to its suite: those whose turn it is, the first one for a model. */
export function testsOfKind(kind: string): (name: string, run: () => Promise<void>) => void {
  let turn = 0;
  return (name, run) => {
    turn += 1;
    if (kindsOfTurn(turn).some((each) => each.kind === kind)) test(name, run);
  };
}

/** Only a follow-up leaves this state. */
export const hasEnded = ({ state }: RunItem): boolean => ['SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED'].includes(state);
