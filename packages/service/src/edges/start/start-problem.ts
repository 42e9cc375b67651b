/** A mistake in the settings or the machine. `main.ts` prints its message without a stack. */
export class StartProblem extends Error {}
