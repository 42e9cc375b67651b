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
      `You can have other agents do parts of the work: ${startAndAwait[means]} At most ${tree.maxLive} of them at work at once. Their answer is only a report: check the important parts.`,
    );
  }
  if (tree.parent !== undefined) {
    const how = means === 'tools' ? 'send_message with the run_id "parent"' : '`child-run message parent TEXT`';
    parts.push(
      `You work for another agent (run ${tree.parent.run_id}). Your last message is what it reads: give the result in it, complete and short. For news on the way there is ${how}.`,
    );
  }
  return parts.join('\n\n');
}

/** The text before a prompt in the mode `orchestrate`. */
export const orchestrateMode =
  'Mode: orchestrate. Split the work into parts that can be done on their own, start a run for each, all at once where they do not need one another, await them, look at what they report, start further ones where something is missing, and end with a summary of the whole. Do yourself only what is too small to hand over.';
