/**
 * Messages between the service and workers. A message is a WebSocket text frame `{type, data}` on `GET
 * /api/v1/selfhosted/worker/ws?worker_id=NAME`. The protocol is that of the public `oz-agent-worker`. Members that are marked "only
 * Runyard's workers" are optional, because the public worker neither sends nor needs them.
 */

import { z } from 'zod';
import { DeniedConnections } from '../egress/denied.ts';
import { EnvironmentLimits } from '../environments/environments.ts';
import { ImageService } from '../environments/services.ts';
import { maxListedExecutions, maxReplacedTokens, maxSetupOutputBytes } from '../limits.ts';
import { AmbientAgentConfig } from '../runs/config.ts';
import { KubernetesFailure } from './kubernetes-failure.ts';

/** The reason why a sandbox was not created, did not start, or failed: the phase of the failure, and a reason that programs can read. */
export const TaskFailure = z.object({
  phase: z.enum(['prepare', 'spawn', 'run']),
  reason: z.string(),
});

export type TaskFailure = z.infer<typeof TaskFailure>;

/** Values of `reason` which mean that the run cannot work in any sandbox until a person changes the environment of the run. */
export const unfitReasons: ReadonlySet<string> = new Set([
  'image_not_found',
  'image_no_access',
  'image_wrong_architecture',
  'image_too_large',
  'image_refused',
  'service_not_started',
]);

export const TaskAssignment = z.object({
  type: z.literal('task_assignment'),
  data: z.object({
    task_id: z.string(),
    execution_id: z.string(),
    /**
     * Only Runyard's workers: id of this assignment. If the service takes an execution back and assigns it again, the new assignment
     * has another id.
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
    /** Only Runyard's workers: limits of the environment. They can only lower the limits of the worker. */
    limits: EnvironmentLimits.optional(),
    /** Only Runyard's workers: `system` of the environment. */
    system: z.enum(['debian']).optional(),
    /** Only Runyard's workers with the feature `service-images`: the services that start from container images. */
    services: z.array(ImageService).optional(),
    /** Only Runyard's workers: hosts that the sandbox may reach, in the format of `EnvironmentNetwork`. */
    allowed_hosts: z.array(z.string()).optional(),
  }),
});
export type TaskAssignment = z.infer<typeof TaskAssignment>;

export const TaskCancellation = z.object({
  type: z.literal('task_cancellation'),
  data: z.object({
    task_id: z.string(),
    /**
     * The worker ends only this execution, and no other execution of the same task. The service always sends it. Public workers without
     * the capability `execution-scoped-cancellation-v1` ignore it, and end all executions of the task.
     */
    execution_id: z.string().optional(),
    /**
     * Only Runyard's workers: the sandbox is killed after this many milliseconds if the agent has not ended by itself. Default: 5,000.
     */
    grace_ms: z.int().optional(),
  }),
});
export type TaskCancellation = z.infer<typeof TaskCancellation>;

/**
 * Only Runyard's workers: an execution becomes idle or works again. The agent of an idle execution waits for a follow-up or for other
 * runs, and the execution takes no slot. The service sends this message only to workers that have sent a hello.
 */
export const TaskIdle = z.object({
  type: z.literal('task_idle'),
  data: z.object({
    task_id: z.string(),
    execution_id: z.string(),
    idle: z.boolean(),
    /**
     * True: the execution waits for other runs. The worker then freezes the commands of the execution, if sandboxes have the feature
     * `freeze`.
     */
    awaits: z.boolean().optional(),
  }),
});
export type TaskIdle = z.infer<typeof TaskIdle>;

/** Only Runyard's workers: the service's answer to the first hello of a worker process. */
export const WorkerWelcome = z.object({
  type: z.literal('worker_welcome'),
  data: z.object({
    /**
     * A secret. In a later hello, the token proves that the hello comes from the same worker process, or from the process that replaced
     * this process.
     */
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

/** Feature of workers that can run services of an environment from container images. */
export const serviceImagesFeature = 'service-images';

/**
 * Feature of workers that know approval rules about hosts: their proxy holds a connection until a person decides, and they refuse the run if
 * their sandboxes reach the network without the proxy. Other workers would let all connections pass.
 */
export const hostRulesFeature = 'host-rules';

/** Maximum number of isolation features, and of missing features, that a worker reports. */
const maxReportedFeatures = 200;

/** The isolation of a worker's sandboxes. The command `doctor` shows it, and the timeline of each run records it. */
export const SandboxLevel = z.object({
  backend: z.enum(['bubblewrap', 'gvisor', 'docker', 'kubernetes', 'none']),
  /**
   * Isolation features that work: `user` (own uid), `cgroup` (hard memory and process limits), `no-network` (only the relay), `images`
   * (container images), `debian` (environments with `system`), `host-rules` (approval rules about hosts), …
   */
  features: z.array(z.string()).max(maxReportedFeatures),
  /** Features that are missing, each with its reason. */
  missing: z.array(z.object({ feature: z.string(), reason: z.string() })).max(maxReportedFeatures),
});
export type SandboxLevel = z.infer<typeof SandboxLevel>;

const tokenOfInstance = z.string().max(100);

/**
 * Only Runyard's workers: first message of a worker on each connection. The worker sends the message again when the service should
 * compare the worker's list of executions with the list of the service.
 */
export const WorkerHello = z.object({
  type: z.literal('worker_hello'),
  data: z.object({
    worker_id: z.string(),
    /** Id of the worker process, for logs. Each start of the worker has a new id. The id is not a credential. */
    instance_id: z.string(),
    /**
     * Token from the `worker_welcome` that this process received, or that an earlier process received whose sandboxes this process has
     * adopted. Absent: this process has no token yet.
     */
    token: tokenOfInstance.optional(),
    /**
     * Tokens of earlier processes that used the same data folder. The worker knows for certain that these processes have ended and have no
     * sandboxes.
     */
    replaced_tokens: z.array(tokenOfInstance).max(maxReplacedTokens).optional(),
    /**
     * Maximum number of executions that work at the same time. Idle executions do not count. The number of all executions together is at
     * most twice this number.
     */
    slots: z.int().min(0),
    /** All executions that this process currently has, in any phase. */
    executions: z
      .array(
        z.object({
          task_id: z.string(),
          execution_id: z.string(),
          /** The value of `idle` in the last `task_idle`. Absent if the worker received no `task_idle`. */
          idle: z.boolean().optional(),
        }),
      )
      .max(maxListedExecutions),
    sandbox: SandboxLevel,
    /** True: the worker takes no new executions and exits after its last execution. */
    draining: z.boolean(),
    /** Version of the worker. */
    version: z.string().max(100).optional(),
    /**
     * Number of seconds for which sandboxes continue after the worker process has ended, so that the next process can adopt them.
     * Absent: the sandboxes end with the process.
     */
    adopt_seconds: z.int().min(0).max(3600).optional(),
  }),
});
export type WorkerHello = z.infer<typeof WorkerHello>;

/**
 * Only Runyard's workers: the disk of the worker's sandboxes, and whether new sandboxes can work. Sent after the hello, once a minute and
 * when `problem` changes; an older service ignores it.
 */
export const WorkerStatus = z.object({
  type: z.literal('worker_status'),
  data: z.object({
    disk: z.object({ free_bytes: z.int().min(0), total_bytes: z.int().min(0) }),
    /** Why the worker takes no new runs. Absent: it takes runs. */
    problem: z.string().max(2000).optional(),
  }),
});
export type WorkerStatus = z.infer<typeof WorkerStatus>;

/**
 * Only Runyard's workers: number of the message. Each worker process numbers its messages. The service answers a numbered message with
 * `messages_applied`. The worker repeats a message without an answer on its next connection.
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
 * Maximum number of hosts in a list that a worker reports. A list can be long, because the rules of the worker's operator can split
 * one rule of an environment into many rules.
 */
export const maxReportedHosts = 200;

/** Hosts that a sandbox may reach. */
export const SandboxNetwork = z.object({
  /** Host rules of the environment, restricted to the hosts that the rules of the worker allow. */
  allowed_hosts: z.array(z.string().max(600)).max(maxReportedHosts),
  /** Host rules of the environment for which the worker allows no host. */
  refused_hosts: z.array(z.string().max(600)).max(maxReportedHosts),
  /** False: the sandbox is not isolated from the network, so nothing is denied. */
  is_enforced: z.boolean(),
});
export type SandboxNetwork = z.infer<typeof SandboxNetwork>;

/** Only Runyard's workers: the first process of the sandbox has started. The service adds the timeline event `worker_container_ready`. */
export const SandboxReady = z.object({
  type: z.literal('sandbox_ready'),
  seq,
  data: z.object({
    task_id: z.string(),
    execution_id: z.string(),
    backend: z.string(),
    /** Milliseconds between the arrival of the assignment and the start of the process. */
    spawn_ms: z.number(),
    /** Limits of the sandbox. Absent: the environment does not lower the limits of the worker. */
    limits: EnvironmentLimits.optional(),
    /** Hosts that the sandbox can reach. Absent if the environment allows no hosts. */
    network: SandboxNetwork.optional(),
  }),
});

/** Maximum number of characters of an image name that a worker reports. */
export const maxImageName = 500;

/** Only Runyard's workers: progress in pulling a container image. The service adds timeline events of a setup step. */
export const ImageStepped = z.object({
  type: z.literal('image_step'),
  seq,
  data: z.object({
    task_id: z.string(),
    execution_id: z.string(),
    /** `finished` also ends a pull that failed. */
    step: z.enum(['started', 'progress', 'finished']),
    image: z.string().max(maxImageName),
    /** Only if `step` is `progress`: number of bytes that are downloaded so far. */
    downloaded_bytes: z.number().min(0).optional(),
    total_bytes: z.number().min(0).optional(),
    /** Only if `step` is `finished`: size of the image. */
    bytes: z.number().min(0).optional(),
    duration_ms: z.number().min(0).optional(),
    /** Only if `step` is `finished`: the reason why the pull failed. */
    error: z.string().max(2000).optional(),
  }),
});

/**
 * Only Runyard's workers: the last lines of a service from a container image, if the agent cannot read them. The service adds a setup step
 * to the timeline.
 */
export const ServicePrinted = z.object({
  type: z.literal('service_output'),
  seq,
  data: z.object({
    task_id: z.string(),
    execution_id: z.string(),
    /** Name of the service. */
    name: z.string().max(100),
    output_tail: z.string().max(maxSetupOutputBytes),
    /** How the program ended; absent while it runs. */
    error: z.string().max(2000).optional(),
  }),
});

/**
 * Only Runyard's workers: connections of a sandbox that the proxy denied. The service adds the timeline event `connection_denied`.
 */
export const ConnectionsDenied = z.object({
  type: z.literal('connections_denied'),
  seq,
  data: DeniedConnections.extend({ task_id: z.string(), execution_id: z.string() }),
});

/**
 * The agent process ended with exit code 0. This message decides the state of the run only if the agent itself has not reported the end.
 */
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

/** Why a task failed, in the words of public workers. */
export const FailureCause = z.enum([
  'operator_shutdown',
  'runtime_crash',
  'oom',
  'eviction',
  'infrastructure_timeout',
  'backend_failure',
  'user_error',
]);
export type FailureCause = z.infer<typeof FailureCause>;

/** The sandbox could not be created, or the agent process ended with an exit code other than 0. */
export const TaskFailed = z.object({
  type: z.literal('task_failed'),
  seq,
  data: z.object({
    task_id: z.string(),
    message: z.string(),
    failure_reason: z.string().optional(),
    /** The exit code of the agent process; 128 + the signal's number if a signal ended the process. */
    exit_code: z.int().optional(),
    execution_id: z.string().optional(),
    failure: TaskFailure.optional(),
    /** Only some public workers, in place of `failure_reason` and `exit_code`. Other words count as absent. */
    failure_cause: FailureCause.optional().catch(undefined),
    failure_details: z.object({ kubernetes: KubernetesFailure.optional() }).optional().catch(undefined),
  }),
});

/**
 * Only public workers: the container, job or process of the execution is gone. The message is the answer to a cancellation with
 * `execution_id`, also to a repeated one.
 */
export const ExecutionClosed = z.object({
  type: z.literal('execution_closed'),
  seq,
  data: z.object({ task_id: z.string(), execution_id: z.string() }),
});

/** A message of a worker. */
export const WorkerMessage = z.discriminatedUnion('type', [
  WorkerHello,
  WorkerStatus,
  TaskClaimed,
  TaskRejected,
  SandboxReady,
  ImageStepped,
  ServicePrinted,
  ConnectionsDenied,
  TaskCompleted,
  TaskFailed,
  ExecutionClosed,
]);
export type WorkerMessage = z.infer<typeof WorkerMessage>;
