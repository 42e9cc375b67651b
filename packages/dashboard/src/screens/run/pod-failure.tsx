import type { TimelineEvent } from '@runyard/contract/runs/timeline';
import { visibleText } from '@runyard/contract/wire/visible';
import type { KubernetesFailure } from '@runyard/contract/workers/kubernetes-failure';
import { Fact, Facts, Stack } from '../../parts/blocks.tsx';

/** Returns what Kubernetes reported about the end of the last sandbox; undefined if the worker reported nothing. */
export function podFailureOf(events: readonly TimelineEvent[]): KubernetesFailure | undefined {
  const end = events.findLast(({ event_type: type }) => type === 'vm_shutdown');
  // The service has checked and shortened this member when the worker sent it.
  return end?.payload?.kubernetes as KubernetesFailure | undefined;
}

/** Shows what Kubernetes reported about a sandbox that failed: pod, container and warnings. */
export function PodFailure({ failure: { job, pod, container, events = [] } }: { failure: KubernetesFailure }) {
  const unmet = (pod?.conditions ?? job?.conditions ?? []).filter(({ status }) => status === 'False');
  return (
    <Stack gap={2} data-part="pod">
      <h2>What Kubernetes reported</h2>
      <Facts>
        <Fact name="Pod">{line(pod?.name ?? job?.name, pod?.phase, pod?.reason)}</Fact>
        <Fact name="Container">
          {line(
            container?.name,
            container?.state,
            container?.termination_reason ?? container?.waiting_reason,
            container?.raw_exit_code === undefined ? undefined : `exit code ${container.raw_exit_code}`,
          )}
        </Fact>
        <Fact name="Not met">{unmet.map(({ type, reason }) => line(type, reason)).join('; ')}</Fact>
        <Fact name="Events">
          {events.map(({ reason, count = 1 }) => line(reason, count > 1 ? `${count} times` : undefined)).join('; ')}
        </Fact>
      </Facts>
    </Stack>
  );
}

const line = (...parts: readonly (string | undefined)[]): string =>
  visibleText(parts.filter((part) => part !== undefined && part !== '').join(', '));
