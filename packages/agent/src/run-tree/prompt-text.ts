import type { RunTree } from './tree.ts';

/** The way in which an agent acts on other runs: with tools of the model loop, or with a command in its shell. */
type Means = 'tools' | 'commands';

const startAndAwait: Record<Means, string> = {
  tools:
    'start_run starts another agent with a prompt, in a fresh sandbox without files of this workspace: write everything that it needs into the prompt, and say what it should answer. await_runs waits and returns the last message of each; list_runs, cancel_run and send_message do what their names say.',
  commands:
    'The command child-run starts other agents, each in a fresh sandbox without files of this workspace: write everything that an agent needs into its prompt, and say what it should answer. `child-run start PROMPT` prints its id, `child-run await [ID…]` waits and prints the last message of each; `child-run --help` has the rest.',
};

/** Returns the text of the prompt about the runs that the agent may start and the run that it works for; '' if there are none. */
export function aboutTree(tree: Pick<RunTree, 'maxLive' | 'parent'>, means: Means): string {
  const parts: string[] = [];
  if (tree.maxLive !== undefined) {
    parts.push(
      `Other agents can do parts of the work: ${startAndAwait[means]} At most ${tree.maxLive} of them can work at the same time. Their answer is only a report: check the important parts.`,
    );
  }
  if (tree.parent !== undefined) {
    const how = means === 'tools' ? 'send_message with the run_id "parent"' : '`child-run message parent TEXT`';
    parts.push(
      `You work for another agent (run ${tree.parent.run_id}), which reads only your last message: put the complete result into it, in a short form. To send news before the end, use ${how}.`,
    );
  }
  return parts.join('\n\n');
}

/** The text before a prompt in the mode `orchestrate`. */
export const orchestrateMode =
  'Mode: orchestrate. Split the work into parts that can be done on their own, start a run for each part, await the runs, read their reports, start further runs if something is missing, and end with a summary of all results. Start runs that do not depend on each other at the same time. Do yourself only what is too small to hand over.';
