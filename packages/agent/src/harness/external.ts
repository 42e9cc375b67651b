import { closeSync, constants, lstatSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import path from 'node:path';
import type { AgentModel, AgentTask } from '@runyard/contract/agent/agent-protocol';
import { builtinHarness } from '@runyard/contract/agent/harness-presets/builtin';
import { findPreset } from '@runyard/contract/agent/harness-presets/presets';
import { policyOfHarness } from '@runyard/contract/runs/compare-approvals';
import { asObject } from '../acp/tool-output.ts';
import { SetupFailure } from '../setup-failure.ts';
import type { Forwarder } from './forwarder/forwarder.ts';
import { configureProgram } from './presets/configure.ts';

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
  /** True: the sandbox has no network, so connections to other hosts always fail. */
  readonly hasNoNetwork: boolean;
}

/**
 * Returns the command and the environment of a harness in a separate process, and writes its files. Throws a `SetupFailure` if the
 * settings of the run do not describe a program that can start.
 */
export function prepareProgram({ task, folder, env, forwarder, hasNoNetwork }: ProgramOptions): HarnessProgram {
  const { type, command: given = [], model } = task.harness;
  const base = { ...env, ...(forwarder && hasNoNetwork ? proxyVariables(forwarder) : {}) };
  const preset = findPreset(type);
  if (preset === undefined) {
    const [program, ...args] = given;
    if (program === undefined) {
      throw new SetupFailure(
        `The harness ${type} cannot be started: the run names no command for it. Give config.harness.command, or use the harness ${builtinHarness}.`,
      );
    }
    const own = { ...base, ...task.harness.env };
    const variables = forwarder && model ? modelVariables(forwarder, model, own) : {};
    return { command: [program, ...args], env: { ...base, ...variables, ...task.harness.env } };
  }
  if (model === undefined || forwarder === undefined) {
    throw new SetupFailure(
      `The harness ${type} cannot be started: the run has no language model. Create a run with config.model_id.`,
    );
  }
  const home = env.HOME ?? '';
  const values = { forwarder: forwarder.url, key: forwarder.key, model: model.provider_model, folder, home };
  const policy = policyOfHarness(task.agent_config);
  const { command, variables, files, keeping, programs } = configureProgram(preset, model.protocol, policy, values);
  const [program = command[0], ...args] = given.length > 0 ? given : command;
  for (const [name, text] of Object.entries(files)) writeHomeFile(home, name, text, keeping.has(name));
  const programEnv = { ...base, ...variables, ...task.harness.env };
  const folders = programs.map((name) => path.join(home, name));
  const search = [...folders, ...(programEnv.PATH ? [programEnv.PATH] : [])].join(path.delimiter);
  return { command: [program, ...args], env: { ...programEnv, ...(folders.length > 0 ? { PATH: search } : {}) } };
}

/** Environment variables that the public client libraries of a model protocol read. */
interface ClientVariables {
  /** Variables for the address of the model. */
  readonly urls: readonly string[];
  readonly keys: readonly string[];
  /** Further variables of these clients. If the run sets one of these variables, the run uses its own address or key. */
  readonly also: readonly string[];
  /** True: the clients themselves add the version of the API to the address. */
  readonly addsVersion: boolean;
}

const openAiClients: ClientVariables = {
  urls: ['OPENAI_BASE_URL'],
  keys: ['OPENAI_API_KEY'],
  also: ['OPENAI_API_BASE'],
  addsVersion: false,
};

/**
 * The names of the variables are from the source of openai 3.57.0, anthropic 2.14.0, google-genai 3.6.1 and litellm 1.110.2 (PyPI), and of
 * @ai-sdk/* in packages/agent.
 */
const clientVariables: Readonly<Record<AgentModel['protocol'], ClientVariables>> = {
  anthropic: {
    urls: ['ANTHROPIC_BASE_URL'],
    keys: ['ANTHROPIC_API_KEY'],
    also: ['ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_API_BASE'],
    addsVersion: true,
  },
  'openai-responses': openAiClients,
  'openai-compatible': openAiClients,
  google: {
    // The second variable belongs to LiteLLM.
    urls: ['GOOGLE_GEMINI_BASE_URL', 'GEMINI_API_BASE'],
    keys: ['GEMINI_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'],
    also: ['GOOGLE_API_KEY'],
    addsVersion: true,
  },
};

/**
 * Returns variables with the address and the key of the run's model, for other programs in the sandbox. If `own` already has an
 * address or a key for these client libraries, leaves out the variables of the libraries, because the run then uses another account.
 */
function modelVariables(
  forwarder: Forwarder,
  { provider_model, protocol, gateway_path }: AgentModel,
  own: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const url = forwarder.url + gateway_path.replace('/api/v1/gateway', '');
  const { urls, keys, also, addsVersion } = clientVariables[protocol];
  const isOwn = [...urls, ...keys, ...also].some((name) => own[name] !== undefined);
  const clientUrl = addsVersion ? url.replace(/\/[^/]+$/, '') : url;
  return {
    RUNYARD_MODEL: provider_model,
    RUNYARD_MODEL_PROTOCOL: protocol,
    RUNYARD_MODEL_BASE_URL: url,
    RUNYARD_MODEL_KEY: forwarder.key,
    ...(isOwn ? {} : Object.fromEntries(urls.map((name) => [name, clientUrl]))),
    ...(isOwn ? {} : Object.fromEntries(keys.map((name) => [name, forwarder.key]))),
  };
}

/**
 * Returns variables that name the forwarder as the proxy for all hosts. The forwarder refuses connections to other hosts and reports them.
 */
function proxyVariables({ url }: Forwarder): Record<string, string> {
  const direct = '127.0.0.1,127.0.0.0/8,0.0.0.0,localhost,.localhost,sandbox,::1,[::1]';
  return {
    ...{ HTTP_PROXY: url, HTTPS_PROXY: url, NO_PROXY: direct },
    ...{ http_proxy: url, https_proxy: url, no_proxy: direct },
  };
}

/**
 * Writes a file below the home of the run. Removes a symbolic link in place of the file or of a folder above the file. An earlier
 * command may have made such a link to let the agent write outside of the home. `keepsMembers`: if both texts are JSON, other members of
 * the earlier file stay. A script is executable.
 */
export function writeHomeFile(home: string, name: string, text: string, keepsMembers = false): void {
  const parts = name.split('/');
  const file = parts.pop() ?? '';
  let folder = home;
  for (const part of parts) {
    folder = path.join(folder, part);
    if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) continue;
    rmSync(folder, { force: true });
    mkdirSync(folder, { mode: 0o700 });
  }
  const target = path.join(folder, file);
  const written = keepsMembers ? withEarlierMembers(target, text) : text;
  rmSync(target, { force: true, recursive: true });
  const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
  const descriptor = openSync(target, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, text.startsWith('#!') ? 0o700 : 0o600);
  try {
    writeSync(descriptor, written);
  } finally {
    closeSync(descriptor);
  }
}

/** No earlier settings file that is larger than this is read. */
const maxEarlierBytes = 1024 * 1024;

/** Returns the JSON text with the members of an earlier file that the text does not have. Returns the text if there is no such JSON file. */
function withEarlierMembers(file: string, text: string): string {
  const stat = lstatSync(file, { throwIfNoEntry: false });
  if (!stat?.isFile() || stat.size > maxEarlierBytes) return text;
  try {
    const earlier: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return `${JSON.stringify(merge(earlier, JSON.parse(text)), null, 2)}\n`;
  } catch {
    return text;
  }
}

function merge(earlier: unknown, later: unknown): unknown {
  const [old, own] = [asObject(earlier), asObject(later)];
  if (old === undefined || own === undefined) return later;
  const names = Object.keys(own).map((name) => [name, merge(old[name], own[name])]);
  return { ...old, ...Object.fromEntries(names) };
}
