type Esbuild = typeof import('esbuild');

let uses = 0;

/**
 * Calls `work` with esbuild. When the last of all concurrent calls has ended, stops the helper process of esbuild, which would
 * otherwise stay until this process ends. Loads esbuild only here, because most starts need no build.
 */
export async function withEsbuild<T>(work: (esbuild: Esbuild) => Promise<T>): Promise<T> {
  uses += 1;
  const esbuild = await import('esbuild').catch((error: unknown) => {
    uses -= 1;
    throw error;
  });
  try {
    return await work(esbuild);
  } finally {
    uses -= 1;
    if (uses === 0) await esbuild.stop();
  }
}
