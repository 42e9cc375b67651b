/** The text before a prompt in the mode `plan`. A model reads it, and the runbook recognizes the mode by it. */
export const planOnly =
  'Mode: plan. Change nothing: look around as far as needed and answer with a plan of what would be done.';
