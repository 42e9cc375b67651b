/**
 * The text before a prompt in the mode `plan`. It asks a model for a plan only. The runbook, which uses no model, recognizes the mode by
 * this text.
 */
export const planOnly =
  'Mode: plan. Change nothing: look around as far as needed and answer with a plan of what would be done.';
