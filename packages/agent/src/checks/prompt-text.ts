/** Returns the message that sends the agent back to its work because a check has failed. */
export const checkReminder = (failure: string): string =>
  `Runyard did not accept the end of your turn, because a check of this run failed. Correct the cause, and end again. Do not change the files that check your work.\n\n${failure}`;
