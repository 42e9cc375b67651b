/** Loads the modules that every run of the built-in harness needs, so that a run which comes later finds them loaded. */
export async function loadForRun(): Promise<void> {
  await Promise.all([import('./run.ts'), import('./workspace-archive/workspace-saver.ts')]);
}
