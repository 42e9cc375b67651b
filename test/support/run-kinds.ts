import type { RunItem } from '@runyard/contract/runs/runs';
import { type TestOptions, test } from 'vitest';
import { isLong } from './long.ts';

export const runbook = { model_id: 'runbook' } as const;
/** The AI SDK loop against a fake model. */
export const oneModel = { model_id: 'anthropic/claude-opus-4-5' } as const;

/** The two built-in harnesses. `config` chooses the harness, and `say` returns a prompt with which it runs a command. */
export const runKinds = [
  { kind: 'runbook', config: runbook, say: (command: string) => `\`\`\`sh\n${command}\n\`\`\`` },
  { kind: 'model', config: oneModel, say: (command: string) => `Please run \`${command}\`.` },
];

/**
 * Returns the kinds with which a test runs. In `bin/test`, the tests alternate between the two kinds, so each harness runs half of the
 * tests. This is enough, because service and worker do the same for both harnesses, and `packages/agent` tests each harness alone. In
 * `bin/test-long`, each test runs with both kinds.
 */
export const kindsOfTurn = (turn: number) =>
  isLong ? runKinds : runKinds.filter((_, index) => index === turn % runKinds.length);

/**
 * Returns a replacement of `test` for the suite of one kind. It adds a test only if the test runs with this kind (`kindsOfTurn`). In
 * `bin/test`, the first test runs with a model.
 */
export function testsOfKind(kind: string): (name: string, run: () => Promise<void>, options?: TestOptions) => void {
  let turn = 0;
  return (name, run, options = {}) => {
    turn += 1;
    if (kindsOfTurn(turn).some((each) => each.kind === kind)) test(name, options, run);
  };
}

/** Returns whether the run has ended. After that, only a follow-up can change its state. */
export const hasEnded = ({ state }: RunItem): boolean => ['SUCCEEDED', 'FAILED', 'ERROR', 'CANCELLED'].includes(state);
