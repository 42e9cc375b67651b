import type { RunServices } from './services.ts';

/** Returns the services of a run. Loads the module of the services only if the environment has services. */
export function deferredServices(): RunServices {
  let services: RunServices | undefined;
  return {
    async start(wanted, env, options) {
      if (wanted.length === 0) return;
      const { runServices } = await import('./services.ts');
      services = runServices();
      await services.start(wanted, env, options);
    },
    report: async () => await services?.report(),
    processes: () => services?.processes() ?? [],
    stop: async () => await services?.stop(),
  };
}
