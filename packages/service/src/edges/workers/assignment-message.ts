import { allowedHostsOf } from '@runyard/contract/egress/network';
import { runnerOf } from '@runyard/contract/runs/runner';
import type { TaskAssignment } from '@runyard/contract/workers/worker-protocol';
import type { Assignment } from '../../runs/executions/queue/assign.ts';

/** Leaves the MCP servers out: foreign workers put them into a command line, and their headers must not reach a sandbox. */
function withoutMcpServers({ mcp_servers: _, ...config }: Assignment['config']): Assignment['config'] {
  return config;
}

/**
 * Returns the message that assigns an execution to a worker. `sidecarImage` is for workers that mount the agent into containers. If
 * such a worker runs agents without one, the arguments tell the agent which image is missing.
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
      ...(allowedHosts.length > 0 ? { allowed_hosts: allowedHosts } : {}),
    },
  };
}
