/** A system whose runs are in containers of a real engine. The engine is started for the system. */
import path from 'node:path';
import { startTestEngine } from '../test/support/container-engine.ts';
import { type System, startSystem } from '../test/support/system.ts';
import { processesBelow } from './processes.ts';

/**
 * Calls `work` with the system and a function that lists the processes that hold the system's containers. If no engine starts, returns
 * the reason.
 */
export async function withDockerSystem<T>(
  work: (system: System, holders: () => number[]) => Promise<T>,
): Promise<T | string> {
  const started = await startTestEngine();
  if (typeof started === 'string') return started;
  await using engine = started;
  const image = 'box:1';
  await engine.makeImage(image, await engine.makeRoot());
  const system = await startSystem({
    env: { RUNYARD_SANDBOX: 'docker', RUNYARD_DOCKER_HOST: engine.host, RUNYARD_DOCKER_IMAGE: image },
  });
  // `processesBelow` finds processes by their working folders. The working folder of the engine's process for a container is the folder
  // of the container, which is below the folder of the engine.
  const folder = path.dirname(engine.host.slice('unix://'.length));
  try {
    return await work(system, () => processesBelow(folder, 'containerd-shim'));
  } finally {
    await system.stop();
  }
}
