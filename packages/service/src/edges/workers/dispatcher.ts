/** Assigns queued executions to the connections of this process that have free slots. */

import { allowedHostsOf } from '@runyard/contract/egress/network';
import { runnerOf } from '@runyard/contract/runs/runner';
import type { TaskAssignment } from '@runyard/contract/workers/worker-protocol';
import { oneAtATime } from '../../platform/serving/one-at-a-time.ts';
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import { type Assignment, assignNext } from '../../runs/executions/queue/assign.ts';
import { requeue } from '../../runs/executions/transitions/transitions.ts';
import {
  evictBeyondLimit,
  hasFreeSlot,
  leastDepthOf,
  type OpenConnection,
  type OpenConnections,
  takenSlots,
} from './open-connection.ts';

export interface Dispatcher {
  /** Assigns executions until no slot is free or no execution is queued. */
  dispatch(): Promise<void>;
  /** Starts `dispatch` without waiting for its end. Logs a failure. */
  dispatchSoon(): void;
  stop(): Promise<void>;
}

const isOfSamePool = (one: OpenConnection, other: OpenConnection): boolean =>
  one.teamId === other.teamId && (other.teamId === null || one.workerId === other.workerId);

/** Returns whether each run that `other` could take could also go to `one`, except for retries that avoid it. */
const coversWorkOf = (one: OpenConnection, other: OpenConnection): boolean =>
  isOfSamePool(one, other) &&
  (one.runsImages || !other.runsImages) &&
  (one.holdsHosts || !other.holdsHosts) &&
  (one.runsServiceImages || !other.runsServiceImages);

/**
 * Makes the dispatcher of this process. `agentArguments` returns the run's arguments for the agent. `sidecarImage` has the agent for public
 * workers.
 */
export function makeDispatcher(
  deps: ExecutionDeps,
  connections: OpenConnections,
  agentArguments: (assignment: Assignment) => string[],
  sidecarImage?: string,
): Dispatcher {
  let isStopped = false;

  /** Assigns one execution to the connection. Returns false if the queue has no execution for the connection. */
  async function fill(connection: OpenConnection): Promise<boolean> {
    const assignment = await assignNext(deps, {
      connectionId: connection.id,
      workerId: connection.workerId,
      workerInstance: connection.instanceId,
      pool: connection.teamId === null ? '' : connection.workerId,
      teamId: connection.teamId,
      runsImages: connection.runsImages,
      holdsHosts: connection.holdsHosts,
      runsServiceImages: connection.runsServiceImages,
      leastDepth: leastDepthOf(connection),
    });
    if (assignment === 'nothing') return false;
    if (assignment === 'contended') return true;
    const { runId, assignmentId, executionId } = assignment;
    // Forget earlier executions of the run, which have all ended. The public worker does not report the end of a task that it handed to
    // another machine.
    for (const [earlier, held] of connection.executions)
      if (held.runId === runId) connection.executions.delete(earlier);
    connection.executions.set(executionId, { runId, assignmentId, idle: false, awaits: false, leaving: false });
    // If the connection was lost during the assignment, the execution returns to the queue.
    if (connections.get(connection.id) !== connection) {
      await requeue(deps.db, { runId, executionId, args: { assignment_id: assignmentId } });
      return false;
    }
    const sidecar = connection.instanceId === null ? sidecarImage : undefined;
    connection.send(assignmentMessage(assignment, agentArguments(assignment), sidecar));
    await evictBeyondLimit(deps, connection);
    return true;
  }

  /** Fills the connections until no connection has both a free slot and a queued execution. The least loaded connection is filled first. */
  async function pass(): Promise<void> {
    const done = new Set<OpenConnection>();
    for (;;) {
      const candidates = [...connections.values()].filter(
        (connection) => hasFreeSlot(connection) && !done.has(connection),
      );
      const load = (connection: OpenConnection) => takenSlots(connection) / connection.slots;
      const [next] = candidates.sort((a, b) => load(a) - load(b));
      if (!next || isStopped || deps.isPaused?.()) return;
      if (!(await fill(next))) {
        done.add(next);
        // Connections of one pool see the same queue, except for runs that need a feature, and for retries, which avoid one worker: if two
        // connections find no run, the others that can do no more also find none.
        for (const connection of candidates)
          if ([...done].filter((each) => coversWorkOf(each, connection)).length >= 2) done.add(connection);
      }
    }
  }

  const passes = oneAtATime(pass);
  return {
    dispatch: passes.run,
    dispatchSoon: () => {
      passes
        .run()
        .catch((error: unknown) => deps.log.error({ err: error }, 'assigning work failed; the next poll tries again'));
    },
    stop: async () => {
      isStopped = true;
      await passes.stop();
    },
  };
}

/** Removes the MCP servers, because workers of other kinds put them into a command line, and the headers of MCP servers must not reach a
 * sandbox. */
function withoutMcpServers({ mcp_servers: _, ...config }: Assignment['config']): Assignment['config'] {
  return config;
}

/**
 * Returns the message that assigns an execution to a worker. `sidecarImage` is for workers that mount the agent into containers. If such a
 * worker runs agents without a container, the arguments tell the agent which image is missing.
 */
export function assignmentMessage(
  assignment: Assignment,
  additionalArguments: string[],
  sidecarImage?: string,
): TaskAssignment {
  const { image } = assignment;
  const imageArguments = sidecarImage === undefined || image === null ? [] : ['--docker-image', image];
  const shape = runnerOf(assignment.config)?.instance_shape;
  const allowedHosts = allowedHostsOf(assignment.network);
  return {
    type: 'task_assignment',
    data: {
      task_id: assignment.runId,
      execution_id: assignment.executionId,
      assignment_id: assignment.assignmentId,
      task: {
        id: assignment.runId,
        title: assignment.title,
        task_definition: { prompt: assignment.prompt },
        created_at: assignment.createdAt,
        updated_at: assignment.updatedAt,
        owner: { Type: 'TEAM', Id: assignment.teamNumber },
        agent_config_snapshot: withoutMcpServers(assignment.config),
        agent_conversation_id: assignment.conversationId,
      },
      env_vars: { RUNYARD_RUN_TOKEN: assignment.runToken },
      additional_oz_args: [...additionalArguments, ...imageArguments],
      ...(image === null ? {} : { docker_image: image }),
      ...(shape ? { instance_shape: shape } : {}),
      ...(sidecarImage === undefined ? {} : { sidecar_image: sidecarImage }),
      ...(assignment.limits ? { limits: assignment.limits } : {}),
      ...(assignment.system ? { system: assignment.system } : {}),
      ...(assignment.services.length > 0 ? { services: [...assignment.services] } : {}),
      ...(allowedHosts.length > 0 ? { allowed_hosts: allowedHosts } : {}),
    },
  };
}
