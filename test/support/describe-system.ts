/**
 * `describe` for tests of a whole system. The system starts before these tests and stops after them. If no sandbox works on this
 * machine, the tests are skipped, and their names say why.
 */
import { afterAll, afterEach, beforeAll, describe } from 'vitest';
import { type FakeModels, startFakeModels } from '../fakes/models.ts';
import { type System, type SystemOptions, sandboxProblem, startSystem } from './system.ts';

/**
 * Setting with which sandboxes end when their worker is killed. With it, a test can kill the worker to simulate the loss of a machine.
 */
export const endsWithWorker = { RUNYARD_ADOPT_SECONDS: '0' } as const;

/** Options of the system, or a function that returns them and can start other programs before the system. */
type Options = SystemOptions | (() => Promise<SystemOptions>);

/** Time limit for a start on a loaded machine. The first worker also bundles the agent. */
const startLimitMs = 150_000;
const stopLimitMs = 60_000;

/**
 * Returns a stand-in for the object that `get` returns, with the same members. Closures can refer to the stand-in before the real
 * object exists, but can use the members only when the tests run.
 */
export function later<T extends object>(get: () => T | undefined): T {
  return new Proxy({} as T, {
    get: (_, name) => {
      const there = get();
      if (there === undefined) throw new Error(`${String(name)} is used before the system was started`);
      return Reflect.get(there, name);
    },
  });
}

/**
 * `describe` for tests that share a system. Programs that `options` starts must be stopped by an `afterAll` of the test file, which
 * runs after the stop of the system.
 */
export function describeSystem(name: string, options: Options, tests: (system: System) => void): void {
  describe.skipIf(sandboxProblem)(sandboxProblem ? `${name} (skipped: ${sandboxProblem})` : name, () => {
    let system: System | undefined;
    beforeAll(async () => {
      system = await startSystem(typeof options === 'function' ? await options() : options);
    }, startLimitMs);
    afterAll(async () => await system?.stop(), stopLimitMs);
    tests(later(() => system));
  });
}

/** Describes tests on a system with fake providers of models. A run that names no model is a runbook. */
export function describeSystemWithModels(
  name: string,
  options: Options,
  tests: (system: System, models: FakeModels) => void,
): void {
  let models: FakeModels | undefined;
  afterAll(async () => await models?.close());
  const withModels = async (): Promise<SystemOptions> => {
    models = await startFakeModels();
    const given = typeof options === 'function' ? await options() : options;
    return { ...given, env: { ...models.env, RUNYARD_DEFAULT_MODEL: 'runbook', ...given.env } };
  };
  describeSystem(name, withModels, (system) => {
    afterEach(() => models?.release());
    tests(
      system,
      later(() => models),
    );
  });
}
