/**
 * Messages between service and worker: WebSocket text frames `{type, data}` on
 * `GET /api/v1/selfhosted/worker/ws?worker_id=NAME`, the wire of the public `oz-agent-worker`.
 * Members that are marked "only Runyard's workers" are optional: the public worker neither sends nor needs them.
 */

import { z } from 'zod';
import { DeniedConnections } from '../egress/denied.ts';
import { EnvironmentLimits } from '../environments/environments.ts';
import { maxReplacedTokens } from '../limits.ts';
import { AmbientAgentConfig } from '../runs/config.ts';

/** The reason why a sandbox was not created, did not start, or failed: its phase, and a reason for programs. */
export const TaskFailure = z.object({
  phase: z.enum(['prepare', 'spawn', 'run']),
  reason: z.string(),
});

export type TaskFailure = z.infer<typeof TaskFailure>;

/** Reasons why no sandbox can ever meet a run's configuration. The environment of the run must change. */
export const unfitReasons: ReadonlySet<string> = new Set([
  'image_not_found',
  'image_no_access',
  'image_wrong_architecture',
  'image_too_large',
  'image_refused',
]);

export const TaskAssignment = z.object({
  type: z.literal('task_assignment'),
  data: z.object({
    task_id: z.string(),
    execution_id: z.string(),
    /**
     * Only Runyard's workers: id of this assignment. If the service takes an execution back, it assigns it again with
     * another id.
     */
    assignment_id: z.string().optional(),
    task: z.object({
      id: z.string(),
      title: z.string(),
      task_definition: z.object({ prompt: z.string() }),
      created_at: z.string(),
      updated_at: z.string(),
      owner: z.object({ Type: z.enum(['USER', 'TEAM']), Id: z.int() }).optional(),
      agent_config_snapshot: AmbientAgentConfig,
      agent_conversation_id: z.string().optional(),
    }),
    docker_image: z.string().optional(),
    sidecar_image: z.string().optional(),
    env_vars: z.record(z.string(), z.string()).optional(),
    additional_sidecars: z
      .array(z.object({ image: z.string(), mount_path: z.string(), read_write: z.boolean() }))
      .optional(),
    additional_oz_args: z.array(z.string()).optional(),
    instance_shape: z.object({ vcpus: z.number(), memory_gb: z.number() }).optional(),
    /** Only Runyard's workers: limits of the environment, which lower the worker's limits. */
    limits: EnvironmentLimits.optional(),
    /** Only Runyard's workers: hosts that the sandbox may reach, in the format of `EnvironmentNetwork`. */
    allowed_hosts: z.array(z.string()).optional(),
  }),
});
export type TaskAssignment = z.infer<typeof TaskAssignment>;

export const TaskCancellation = z.object({
  type: z.literal('task_cancellation'),
  data: z.object({
    task_id: z.string(),
    /** Only Runyard's workers: end this execution, and no other execution of the same task. */
    execution_id: z.string().optional(),
    /**
     * Only Runyard's workers: the sandbox is killed after this many milliseconds if the agent has not ended by itself. Default: 5,000.
     */
    grace_ms: z.int().optional(),
  }),
});
export type TaskCancellation = z.infer<typeof TaskCancellation>;

/**
 * Only Runyard's workers: an execution becomes idle (its agent waits for a follow-up or for other runs, without a slot) or works again.
 * The service sends it only to workers that have sent a hello.
 */
export const TaskIdle = z.object({
  type: z.literal('task_idle'),
  data: z.object({
    task_id: z.string(),
    execution_id: z.string(),
    idle: z.boolean(),
    /** True: the execution waits for other runs. The worker then freezes the commands of the execution if it can. */
    awaits: z.boolean().optional(),
  }),
});
export type TaskIdle = z.infer<typeof TaskIdle>;

/** Only Runyard's workers: answer to the first hello of a worker's process. */
export const WorkerWelcome = z.object({
  type: z.literal('worker_welcome'),
  data: z.object({
    /** Secret. In later hellos it proves that the hello comes from the same process, or from its successor. */
    token: z.string(),
  }),
});

/**
 * Only Runyard's workers: the service has committed the effects of the message with this `seq` and of all earlier messages on the
 * connection.
 */
export const MessagesApplied = z.object({
  type: z.literal('messages_applied'),
  data: z.object({ seq: z.int() }),
});

/** A message of the service. */
export const ServiceMessage = z.discriminatedUnion('type', [
  TaskAssignment,
  TaskCancellation,
  TaskIdle,
  WorkerWelcome,
  MessagesApplied,
]);
export type ServiceMessage = z.infer<typeof ServiceMessage>;

/** Feature of workers that can run container images. */
export const imagesFeature = 'images';

/** The isolation of a worker's sandboxes. `doctor` shows it, and each run records it. */
export const SandboxLevel = z.object({
  backend: z.enum(['bubblewrap', 'gvisor', 'docker', 'kubernetes', 'none']),
  /**
   * Isolation features that work: `user` (own uid), `cgroup` (hard memory and process limits), `no-network` (only the relay), `images`
   * (container images), …
   */
  features: z.array(z.string()),
  /** Features that are missing, each with its reason. */
  missing: z.array(z.object({ feature: z.string(), reason: z.string() })),
});
export type SandboxLevel = z.infer<typeof SandboxLevel>;

const tokenOfInstance = z.string().max(100);

/**
 * Only Runyard's workers: first message of our worker on each connection. Sent again when the service should compare
 * the list of executions.
 */
export const WorkerHello = z.object({
  type: z.literal('worker_hello'),
  data: z.object({
    worker_id: z.string(),
    /** Id of this process for logs. It is new on each start and is not a credential. */
    instance_id: z.string(),
    /**
     * Token from the service's `worker_welcome` to this process, or to the earlier process whose sandboxes it adopted; absent: no token has
     * arrived yet.
     */
    token: tokenOfInstance.optional(),
    /** Tokens of earlier processes of the same data folder that have provably ended and have no sandboxes left. */
    replaced_tokens: z.array(tokenOfInstance).max(maxReplacedTokens).optional(),
    /** Maximum number of executions that work at the same time. Idle sandboxes do not count. The total is at most twice this number. */
    slots: z.int().min(0),
    /** Executions in any phase that this process currently has. */
    executions: z.array(
      z.object({
        task_id: z.string(),
        execution_id: z.string(),
        /** The value of `idle` in the last `task_idle`. Absent if the worker received no `task_idle`. */
        idle: z.boolean().optional(),
      }),
    ),
    sandbox: SandboxLevel,
    /** True: the worker takes no new executions and exits after its last execution. */
    draining: z.boolean(),
    /** Version of the worker. */
    version: z.string().max(100).optional(),
    /**
     * Seconds for which the sandboxes continue after the end of the worker's process, so that the next process can list them; absent: the
     * sandboxes end with the process.
     */
    adopt_seconds: z.int().min(0).max(3600).optional(),
  }),
});
export type WorkerHello = z.infer<typeof WorkerHello>;

/**
 * Only Runyard's workers: the disk of the worker's sandboxes. Sent after the hello and once a minute; an older service
 * ignores it.
 */
export const WorkerStatus = z.object({
  type: z.literal('worker_status'),
  data: z.object({
    disk: z.object({ free_bytes: z.int().min(0), total_bytes: z.int().min(0) }),
  }),
});
export type WorkerStatus = z.infer<typeof WorkerStatus>;

/**
 * Only Runyard's workers: number of the message in its process. The service answers a numbered message with
 * `messages_applied`. The worker repeats an unanswered message on the next connection.
 */
const seq = z.int().positive().optional();

export const TaskClaimed = z.object({
  type: z.literal('task_claimed'),
  seq,
  data: z.object({ task_id: z.string(), worker_id: z.string(), execution_id: z.string().optional() }),
});

export const TaskRejected = z.object({
  type: z.literal('task_rejected'),
  seq,
  data: z.object({ task_id: z.string(), reason: z.string(), execution_id: z.string().optional() }),
});

/**
 * Maximum number of hosts in a list that a worker reports. The rules of the worker's operator can split the rules of an environment into
 * many.
 */
export const maxReportedHosts = 200;

/** Hosts that a sandbox may reach. */
export const SandboxNetwork = z.object({
  /** Rules of the environment, restricted by the worker's rules. */
  allowed_hosts: z.array(z.string().max(600)).max(maxReportedHosts),
  /** Rules of the environment that the worker does not allow at all. */
  refused_hosts: z.array(z.string().max(600)).max(maxReportedHosts),
  /** False: the sandbox is not isolated from the network, so nothing is denied. */
  is_enforced: z.boolean(),
});
export type SandboxNetwork = z.infer<typeof SandboxNetwork>;

/** Only Runyard's workers: the sandbox's first process was spawned; causes the timeline event `worker_container_ready`. */
export const SandboxReady = z.object({
  type: z.literal('sandbox_ready'),
  seq,
  data: z.object({
    task_id: z.string(),
    execution_id: z.string(),
    backend: z.string(),
    /** Milliseconds between the arrival of the assignment and the start of the process. */
    spawn_ms: z.number(),
    /** Limits of the sandbox; absent: the worker's limits, which the environment does not lower. */
    limits: EnvironmentLimits.optional(),
    /** Hosts that the sandbox can reach. Absent if the environment allows no hosts. */
    network: SandboxNetwork.optional(),
  }),
});

/** Maximum number of characters of an image name that a worker reports. */
export const maxImageName = 500;

/** Only Runyard's workers: a step in pulling a container image; causes timeline events of a setup step. */
export const ImageStepped = z.object({
  type: z.literal('image_step'),
  seq,
  data: z.object({
    task_id: z.string(),
    execution_id: z.string(),
    /** `finished` also ends a pull that failed. */
    step: z.enum(['started', 'progress', 'finished']),
    image: z.string().max(maxImageName),
    /** With `progress`. */
    downloaded_bytes: z.number().min(0).optional(),
    total_bytes: z.number().min(0).optional(),
    /** With `finished`: size of the image. */
    bytes: z.number().min(0).optional(),
    duration_ms: z.number().min(0).optional(),
    /** With `finished`: the reason why there is no image. */
    error: z.string().max(2000).optional(),
  }),
});

/**
 * Only Runyard's workers: connections of a sandbox that its proxy denied; causes the timeline event `connection_denied`.
 */
export const ConnectionsDenied = z.object({
  type: z.literal('connections_denied'),
  seq,
  data: DeniedConnections.extend({ task_id: z.string(), execution_id: z.string() }),
});

/** The agent process ended with exit code 0. This message decides the state of the run only if the agent has not reported an end. */
export const TaskCompleted = z.object({
  type: z.literal('task_completed'),
  seq,
  data: z.object({
    task_id: z.string(),
    message: z.string(),
    task_state: z.literal('CANCELLED').optional(),
    execution_id: z.string().optional(),
  }),
});

/** The sandbox could not be created, or its agent ended with another exit code. */
export const TaskFailed = z.object({
  type: z.literal('task_failed'),
  seq,
  data: z.object({
    task_id: z.string(),
    message: z.string(),
    failure_reason: z.string().optional(),
    /** The exit code; 128 + signal if a signal ended the process. */
    exit_code: z.int().optional(),
    execution_id: z.string().optional(),
    failure: TaskFailure.optional(),
  }),
});

/** A message of a worker. */
export const WorkerMessage = z.discriminatedUnion('type', [
  WorkerHello,
  WorkerStatus,
  TaskClaimed,
  TaskRejected,
  SandboxReady,
  ImageStepped,
  ConnectionsDenied,
  TaskCompleted,
  TaskFailed,
]);
export type WorkerMessage = z.infer<typeof WorkerMessage>;
