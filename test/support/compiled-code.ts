/** Name of the environment variable with the folder of compiled code. `database.ts` makes and removes the folder. */
export const compiledCodeVariable = 'TEST_COMPILED_CODE';

/**
 * Lets the programs that this process starts keep their compiled code in the folder of the test run, because their bundles have
 * other paths in each test run. This process itself uses the folder with which it was started, as the next test run will.
 */
export function keepCodeOfPrograms(): void {
  process.env.NODE_COMPILE_CACHE = process.env[compiledCodeVariable];
}

/**
 * Returns environment variables for a program of Runyard. They name the folder where the programs of a test run keep compiled code.
 * Without this folder, a program compiles all of its modules at each start.
 */
export function compiledCode(): Record<string, string> {
  const { NODE_COMPILE_CACHE } = process.env;
  return NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
}
