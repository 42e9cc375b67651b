/** Loads the modules of a command when it runs, so that `--help` and other commands do not wait for them. */
import type { Context } from './context.ts';

/** Returns the context of a command. @throws Failure if a setting is wrong */
export async function loadContext(): Promise<Context> {
  const { createContext } = await import('./context.ts');
  return createContext(process.env);
}

/** Returns the context of a command and the id of the run that its argument names. @throws as `resolveRunId` */
export async function loadRun(name: string): Promise<[context: Context, runId: string]> {
  const context = await loadContext();
  const { runIdOf } = await import('./run-id.ts');
  return [context, await runIdOf(context, name)];
}

/** Returns the context of a command and the id of the thing that its argument names, by its id or its name. @throws as `pickNamed` */
export async function loadNamed(
  kind: 'environment' | 'factory' | 'schedule',
  name: string,
): Promise<[context: Context, id: string]> {
  const context = await loadContext();
  const [{ connect }, { idOf }] = await Promise.all([import('./api.ts'), import('./named.ts')]);
  return [context, await idOf[kind](connect(context), name)];
}
