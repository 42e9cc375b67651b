import type { SandboxLevel } from '@runyard/contract/workers/worker-protocol';
import { newSandboxId } from '../bubblewrap/prepare.ts';
import type { SandboxBackend, SandboxSpecification } from '../sandbox.ts';
import { ofService, refuseFiles, refuseSystem } from '../specification.ts';
import type { PooledSandbox } from '../supervisors.ts';
import type { ContainerImage } from './images/image.ts';
import type { Images, ProvidedImage, PullWatcher } from './images/images.ts';
import type { ContainerOrder } from './prepared-container.ts';
import type { ContainerService } from './services.ts';

/** Makes a sandbox. The container of the sandbox is started together with the agent. */
export type MakeContainerSandbox = (
  order: Omit<ContainerOrder, 'runtime'>,
) => Promise<Omit<PooledSandbox, 'isAlive' | 'gone'>>;

/**
 * The first pause between two progress reports of a pull is `reportMs`. Each further pause is longer by the factor `growth`, so that a
 * pull of an hour has only about fifteen reports.
 */
const reportMs = 5000;
const growth = 1.4;

/** Creates the backend. `defaultImage` is for runs whose environment names no image. */
export function dockerBackend(
  level: SandboxLevel,
  images: Images,
  defaultImage: string,
  make: MakeContainerSandbox,
): SandboxBackend {
  return {
    describe: () => level,
    async create(specification, signal) {
      refuseFiles(specification);
      refuseSystem(specification);
      const { executionId, limits, vcpus, services = [] } = specification;
      const provided: ProvidedImage[] = [];
      const provide = async (named: string): Promise<ContainerImage> => {
        const image = await images.provide(named, watcherOf(named, specification.onImage), signal);
        provided.push(image);
        return { id: image.id, env: image.env, volumes: image.volumes };
      };
      const release = (): void => {
        for (const image of provided) image.release();
      };
      let sandbox: Awaited<ReturnType<MakeContainerSandbox>> | undefined;
      try {
        const image = await provide(specification.image ?? defaultImage);
        const beside: ContainerService[] = [];
        for (const { name, image: named, args, env } of services)
          beside.push({ name, image: await ofService(name, () => provide(named)), args, env });
        sandbox = await make({
          id: newSandboxId(),
          executionId,
          image,
          limits,
          ...(beside.length === 0 ? {} : { services: beside }),
          ...(vcpus === undefined ? {} : { vcpus }),
        });
        sandbox.assign?.(specification);
        if (specification.egress !== undefined) await sandbox.openEgress(specification.egress);
        signal.throwIfAborted();
        const { dispose } = sandbox;
        return {
          ...sandbox,
          async dispose() {
            await dispose();
            release();
          },
        };
      } catch (error) {
        await sandbox?.dispose();
        release();
        throw error;
      }
    },
    close: async () => {},
  };
}

/** Returns a watcher that reports the steps of a pull and, from time to time, the progress. */
function watcherOf(image: string, report: SandboxSpecification['onImage'] = () => {}): PullWatcher {
  let began = 0;
  let reportedAt = 0;
  let pauseMs = reportMs;
  return {
    started() {
      began = performance.now();
      reportedAt = began;
      report({ step: 'started', image });
    },
    progress({ downloadedBytes, totalBytes }) {
      if (performance.now() - reportedAt < pauseMs) return;
      reportedAt = performance.now();
      pauseMs *= growth;
      report({ step: 'progress', image, downloadedBytes, totalBytes });
    },
    finished: (end) => report({ step: 'finished', image, durationMs: Math.round(performance.now() - began), ...end }),
  };
}
