/**
 * Returns variables for the environment of a program of ours: the folder where the programs of a test run keep compiled code. Without
 * it a program compiles all of its modules at each start. `database.ts` makes and removes the folder.
 */
export function compiledCode(): Record<string, string> {
  const { NODE_COMPILE_CACHE } = process.env;
  return NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
}
