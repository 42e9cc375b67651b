/**
 * Returns environment variables for a program of Runyard. They name the folder where the programs of a test run keep compiled code.
 * Without this folder, a program compiles all of its modules at each start. `database.ts` makes and removes the folder.
 */
export function compiledCode(): Record<string, string> {
  const { NODE_COMPILE_CACHE } = process.env;
  return NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
}
