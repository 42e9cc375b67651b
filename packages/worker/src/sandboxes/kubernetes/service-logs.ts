import type { V1Pod } from '@kubernetes/client-node';
import type { ImageService } from '@runyard/contract/environments/services';
import type { SandboxSpecification } from '../sandbox.ts';
import type { Cluster } from './cluster.ts';
import { endOfService } from './pod-state.ts';
import { containerOfService } from './services.ts';

export interface ServiceLogs {
  /** Reports the lines that the services of the pod have printed since the previous call, and their ends. Never rejects. */
  report(pod: V1Pod | undefined): Promise<void>;
}

/** Reads the output of the services of a pod, because the agent in the pod cannot read it. */
export function serviceLogs(
  cluster: Pick<Cluster, 'logOf'>,
  services: readonly ImageService[],
  onService: NonNullable<SandboxSpecification['onService']>,
): ServiceLogs {
  /** Time of the last line that was reported, by the name of the service. The cluster writes times so that they sort as text. */
  const reported = new Map<string, string>();
  const restarts = new Map<string, number>();

  const reportOne = async (pod: V1Pod, name: string): Promise<void> => {
    const container = containerOfService(name);
    const since = reported.get(name) ?? '';
    const text = await cluster.logOf(pod.metadata?.name ?? '', container, true).catch(() => '');
    const lines = text.split('\n').flatMap((line) => {
      const [time = '', ...rest] = line.split(' ');
      return /^\d{4}-/.test(time) && time > since ? [{ time, text: rest.join(' ') }] : [];
    });
    const status = pod.status?.initContainerStatuses?.find((each) => each.name === container);
    const count = status?.restartCount ?? 0;
    const ended = status && count > (restarts.get(name) ?? 0) ? endOfService(status) : undefined;
    restarts.set(name, count);
    reported.set(name, lines.at(-1)?.time ?? since);
    if (lines.length > 0 || ended !== undefined)
      onService({
        name,
        output: lines.map((line) => `${line.text}\n`).join(''),
        ...(ended === undefined ? {} : { ended: `${ended}; the cluster has started it again` }),
      });
  };

  let turn: Promise<void> = Promise.resolve();
  return {
    report(pod) {
      if (pod !== undefined)
        turn = turn.then(async () => {
          for (const { name } of services) await reportOne(pod, name);
        });
      return turn;
    },
  };
}
