import type { RunState } from '@runyard/contract/runs/states';
import { leastDepth } from '../queue/may-take.ts';

/** The facts that determine the sentence about a waiting run. */
export interface WaitFacts {
  readonly state: RunState;
  /** The run's pool: '' for the hosted pool, else the name of a team's own worker. */
  readonly pool: string;
  /** Number of seconds until the pause before a retry is over; 0 or less: there is no pause. */
  readonly pause_seconds: number;
  /** True if the parent of the run has reached `child_runs.max_live`. */
  readonly waits_for_place: boolean;
  /** True if a sandbox of an earlier execution of the run has not ended. */
  readonly has_older: boolean;
  /** Number of executions that count for the team's limit. */
  readonly team_taken: number;
  readonly team_limit: number;
  /** Number of sandboxes of the team that work or wait for other runs. */
  readonly team_live: number;
  /** Number of ancestors of the run. */
  readonly depth: number;
  /** Least depth of a run that at least one of `workers` may still start, in addition to its sandboxes that work or wait. */
  readonly least_depth: number;
  /** Number of connected workers of the pool that accept runs. */
  readonly workers: number;
  /** Number of connected workers of the pool that are shutting down. */
  readonly leaving_workers: number;
  /** Why a connected worker of the pool takes no runs; null: there is no such worker. */
  readonly problem: string | null;
  /** Container image that the run needs; null: none. */
  readonly image: string | null;
  /** Number of `workers` that can run container images. */
  readonly image_workers: number;
  /** Number of `workers` that do not report how they run agents. An example is oz-agent-worker. */
  readonly public_workers: number;
  /** Whether an approval rule of the run names a host. */
  readonly asks_hosts: boolean;
  /** Number of `workers` that know approval rules about hosts. */
  readonly host_workers: number;
  /** Whether the environment of the run has services from container images. */
  readonly starts_images: boolean;
  /** Number of `workers` that can run services from container images. */
  readonly service_image_workers: number;
  /** Slots of `workers`. */
  readonly slots: number;
  readonly slots_taken: number;
  /** Name of the worker to which the run was assigned. */
  readonly worker_id: string | null;
  readonly has_sandbox: boolean;
  /** Kind of the setup step in progress. */
  readonly step_kind: string | null;
  readonly step_name: string | null;
  /** If the turn was interrupted: the time, in RFC 3339 format, until which the agent waits for a message. */
  readonly idle_until: string | null;
  /** Whether people can cancel this kind of run. */
  readonly can_cancel: boolean;
}

/** Words before the name of a step. The names of `workspace` steps are whole sentences. */
const stepWords: Readonly<Record<string, string>> = {
  image: 'pulling the image',
  workspace: '',
  attachments: 'writing the attachments',
  clone: 'cloning',
  setup_command: 'setup command',
  mcp_server: 'starting the MCP server',
  harness: 'starting the harness',
};

/** Returns a sentence about a run that waits, because it has not begun yet or because its turn was interrupted. */
export function waitSentence(facts: WaitFacts): string {
  switch (facts.state) {
    case 'QUEUED':
      return queueSentence(facts);
    case 'PENDING':
      return `The run was handed to the worker ${facts.worker_id ?? ''}, which has not claimed it yet.`;
    case 'CLAIMED':
      return setupSentence(facts);
    default:
      return `The turn was interrupted. The agent waits in its sandbox for a message until ${toSeconds(facts.idle_until)}. Send a message${facts.can_cancel ? ', or cancel the run to end the sandbox' : ''}.`;
  }
}

/** Cuts the fraction of a second from a time. */
const toSeconds = (time: string | null): string => (time ?? '').replace(/\.\d+/, '');

function queueSentence(facts: WaitFacts): string {
  const { pool, workers, slots, team_limit } = facts;
  if (facts.pause_seconds > 0) return `The run waits ${Math.ceil(facts.pause_seconds)} s before it is tried again.`;
  if (facts.waits_for_place)
    return 'The run waits: its parent has reached child_runs.max_live. The run starts when other children of the parent have ended.';
  if (facts.has_older) return 'The run waits until the sandbox of its earlier execution has ended.';
  if (workers === 0) {
    if (facts.problem !== null)
      return pool === ''
        ? 'The run waits: no worker that is connected can start sandboxes now. The operator of this service sees the reason with bin/runyard status.'
        : `The run waits: the connected worker takes no runs because of a problem: ${facts.problem}`;
    if (facts.leaving_workers > 0)
      return 'The run waits: the connected workers are shutting down and take no further runs. Start another one with bin/runyard worker.';
    return pool === ''
      ? 'The run waits: no worker is connected. Start one with bin/runyard worker.'
      : `The run waits: no worker with the name ${pool} is connected (config.worker_host).`;
  }
  if (facts.image !== null && facts.image_workers + facts.public_workers === 0)
    return `The run waits: no connected worker can run container images, and its environment has the docker_image ${facts.image}. Start a worker with RUNYARD_SANDBOX=docker, or create the run with another environment.`;
  if (facts.asks_hosts && facts.host_workers === 0)
    return 'The run waits: its approval_rules name a host, and no connected worker can hold connections for an approval. Start a worker of this version with bin/runyard worker, or create the run without this rule.';
  if (facts.starts_images && facts.service_image_workers === 0)
    return 'The run waits: its environment has services with an image, and no connected worker can start services from container images. Start a worker with RUNYARD_SANDBOX=docker or kubernetes, or start these services with command alone.';
  if (facts.team_taken >= team_limit)
    return `The run waits: the team's limit is reached (${team_limit} ${team_limit === 1 ? 'run' : 'runs'} at once).`;
  if (facts.slots_taken >= slots)
    return `The run waits for a free slot: ${workers === 1 ? 'the connected worker has' : `the ${workers} connected workers have`} ${slots}, and all are taken.`;
  const bound = boundSentence(facts);
  if (bound !== undefined) return bound;
  if (facts.image !== null && facts.image_workers === 0)
    return `The run waits: its environment has the docker_image ${facts.image}, and the connected worker is oz-agent-worker, which takes such runs only if RUNYARD_SIDECAR_IMAGE is set for the service.`;
  return 'The run waits for a worker to take it.';
}

/** Returns the sentence about the limit of sandboxes that work or wait for other runs; undefined if the limit does not stop the run. */
function boundSentence({ team_live, team_limit, depth, least_depth, workers }: WaitFacts): string | undefined {
  const times = `${2 + depth} times`;
  const freed =
    'It starts when one of these sandboxes ends: when a run that waits for others continues and ends, or is cancelled.';
  if (leastDepth(team_live, team_limit) > depth)
    return `The run waits: the team has ${team_live} sandboxes that work or wait for other runs. A run of this depth starts only if the team has fewer than ${times} its limit (${team_limit} at once). ${freed}`;
  if (least_depth <= depth) return undefined;
  return `The run waits: ${workers === 1 ? 'the connected worker has' : 'each connected worker has'} sandboxes that work or wait for other runs, ${times} as many as slots. ${freed}`;
}

function setupSentence({ worker_id, has_sandbox, step_kind, step_name }: WaitFacts): string {
  if (step_kind !== null)
    return `The agent prepares the sandbox: ${`${stepWords[step_kind] ?? step_kind} ${step_name ?? ''}`.trim()}`;
  if (has_sandbox) return 'The sandbox is ready, and the agent starts in it.';
  return `The worker ${worker_id ?? ''} starts the sandbox.`;
}
