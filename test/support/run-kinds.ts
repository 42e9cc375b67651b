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
 * Returns the kinds with which a test runs. In `bin/test`, the tests alternate between the two kinds, so each harness runs half of the
 * tests. That is enough: service and worker do the same for both harnesses, and `packages/agent` tests each harness alone. In
 * `bin/test-long`, each test runs with all
 * kinds.
 */
export const kindsOfTurn = (turn: number) =>
  isLong ? runKinds : runKinds.filter((_, index) => index === turn % runKinds.length);

/** Returns the function that adds a test to the suite of one kind if it is this kind's turn. The first test runs with a model. */
export function testsOfKind(kind: string): (name: string, run: () => Promise<void>) => void {
  let turn = 0;
  return (name, run) => {
    turn += 1;
    if (kindsOfTurn(turn).some((each) => each.kind === kind)) test(name, run);
  };
}

/** Only a follow-up can change this state. */
export const hasEnded = ({ state }: RunItem): boolean => ['SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED'].includes(state);
