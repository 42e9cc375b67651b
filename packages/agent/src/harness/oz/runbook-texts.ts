/** Messages of the runbook about itself. */

export const onlyBlocks = 'The model `runbook` runs these blocks and nothing else.';

export const nothingToRun = `There was nothing to run. A runbook runs the fenced \`sh\` and \`bash\` blocks of its prompt, for example:

~~~
\`\`\`sh
ls -la
\`\`\`
~~~`;

export const withoutModel =
  "No language model is configured, so only the prompt's fenced `sh` and `bash` blocks were run (model `runbook`).";

/** The README has the same three ways. */
export const waysToAddModel = `There are three ways to add a model; set the variable for the service, then start it again:
1. The key of a provider: RUNYARD_ANTHROPIC_API_KEY, RUNYARD_OPENAI_API_KEY or RUNYARD_GOOGLE_API_KEY.
2. A model on your own machine (Ollama, vLLM, llama.cpp): RUNYARD_MODEL_BASE_URL, for example http://127.0.0.1:11434/v1, and RUNYARD_MODEL_KEY if it wants a key.
3. Another server that speaks the protocol of a provider: the key of 1 with RUNYARD_ANTHROPIC_BASE_URL, RUNYARD_OPENAI_BASE_URL or RUNYARD_GOOGLE_BASE_URL.`;

/** Returns the text of a runbook whose machine was lost after `done` of its commands. */
export function afterLoss(done: number, all: number): string {
  const lost = 'The machine of this run was lost.';
  if (done === 0) return `${lost} The commands run again from the first.`;
  if (done === all) return `${lost} All ${all} commands were done before, and none runs again.`;
  return `${lost} The first ${done} of ${all} commands were done before and do not run again.`;
}
