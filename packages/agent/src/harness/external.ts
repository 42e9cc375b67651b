import type { AgentTask } from '@runyard/contract/agent-protocol';
import { findPreset } from '@runyard/contract/harness-presets/presets';
import { SetupFailure } from '../setup-failure.ts';
import type { Forwarder } from './forwarder/forwarder.ts';
import { configureProgram } from './presets/configure.ts';
import { writeHomeFile } from './presets/home-file.ts';

/** A program to start as the harness. */
export interface HarnessProgram {
  readonly command: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface ProgramOptions {
  readonly task: AgentTask;
  /** The folder in which the program works. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Undefined: the run has no model. */
  readonly forwarder: Forwarder | undefined;
  /** True: the sandbox has no network, so that a connection elsewhere can only be refused. */
  readonly hasNoNetwork: boolean;
}

/** Returns command and environment of a harness in a process of its own, and writes its files. Throws a `SetupFailure`. */
export function prepareProgram({ task, folder, env, forwarder, hasNoNetwork }: ProgramOptions): HarnessProgram {
  const { type, command: given = [], model } = task.harness;
  const base = { ...env, ...(forwarder && hasNoNetwork ? proxyVariables(forwarder) : {}) };
  const preset = findPreset(type);
  if (preset === undefined) {
    const [program, ...args] = given;
    if (program === undefined) {
      throw new SetupFailure(
        `The harness ${type} cannot be started: the run names no command for it. Give config.harness.command, or use the harness oz.`,
      );
    }
    const variables = { ...(forwarder && model ? modelVariables(forwarder, model) : {}), ...task.harness.env };
    return { command: [program, ...args], env: { ...base, ...variables } };
  }
  if (model === undefined || forwarder === undefined) {
    throw new SetupFailure(
      `The harness ${type} cannot be started: the run has no language model. Create a run with config.model_id.`,
    );
  }
  const values = { forwarder: forwarder.url, key: forwarder.key, model: model.provider_model, folder };
  const policy = task.agent_config.approval_policy ?? 'auto-approve';
  const { command, variables, files } = configureProgram(preset, model.protocol, policy, values);
  const [program = command[0], ...args] = given.length > 0 ? given : command;
  for (const [name, text] of Object.entries(files)) writeHomeFile(env.HOME ?? '', name, text);
  return { command: [program, ...args], env: { ...base, ...variables, ...task.harness.env } };
}

/** Variables by which any other program can find the run's model. */
function modelVariables(
  forwarder: Forwarder,
  model: NonNullable<AgentTask['harness']['model']>,
): Record<string, string> {
  return {
    RUNYARD_MODEL: model.provider_model,
    RUNYARD_MODEL_PROTOCOL: model.protocol,
    RUNYARD_MODEL_BASE_URL: `${forwarder.url}${model.gateway_path.replace('/api/v1/gateway', '')}`,
    RUNYARD_MODEL_KEY: forwarder.key,
  };
}

/** Names the forwarder as the proxy, which refuses every connection and reports it. */
function proxyVariables({ url }: Forwarder): Record<string, string> {
  const direct = '127.0.0.1,localhost,::1';
  return {
    ...{ HTTP_PROXY: url, HTTPS_PROXY: url, NO_PROXY: direct },
    ...{ http_proxy: url, https_proxy: url, no_proxy: direct },
  };
}
