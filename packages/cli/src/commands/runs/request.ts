import { maxPromptBytes } from '@runyard/contract/limits';
import type { ApprovalRule } from '@runyard/contract/runs/approval-rules';
import type { ApprovalPolicy } from '@runyard/contract/runs/approvals';
import type { AmbientAgentConfig, RunBudget, WorkerLossPolicy } from '@runyard/contract/runs/config';
import type { RunMode } from '@runyard/contract/runs/message-origin';
import type { RunAgentRequest } from '@runyard/contract/runs/run-request';
import { overLimit } from '@runyard/contract/wire/byte-size';
import { Failure } from '../../exits/failure.ts';
import { jsonFrom, readPrompt } from '../../input/input-file.ts';
import { parsePair } from '../../input/parse-pair.ts';
import { readAttachments } from '../../input/read-attachments.ts';
import { mcpServersFrom } from './mcp-servers.ts';

export interface RunOptions {
  readonly title?: string;
  readonly mode?: RunMode;
  /** JSON file with members of the configuration. */
  readonly config?: string;
  readonly model?: string;
  readonly name?: string;
  readonly environment?: string;
  /** Names of the secrets that the run gets. */
  readonly secret?: readonly string[];
  readonly refresh?: true;
  readonly harness?: string;
  /** Shell command that starts the harness. */
  readonly harnessCommand?: string;
  /** Skill that the run follows, in the form of `config.skill_spec`. */
  readonly skill?: string;
  /** The policy for the agent's permission requests. */
  readonly approval?: ApprovalPolicy;
  /** Actions that the agent asks about, in the form `KIND` or `KIND=TEXT`. */
  readonly ask?: readonly string[];
  /** Minutes that the sandbox waits for a follow-up. */
  readonly idle?: string;
  /** JSON file with the schema of the result. */
  readonly schema?: string;
  /** JSON file with the checks of the run. */
  readonly checks?: string;
  /** Error codes after which the run is repeated. */
  readonly retry?: readonly string[];
  /** How many runs may follow the first one. */
  readonly retries?: string;
  /** Maximum cost in US dollars. */
  readonly maxCost?: string;
  readonly maxTurns?: string;
  readonly maxMinutes?: string;
  readonly onWorkerLoss?: WorkerLossPolicy;
  /** MCP servers: ids or names of stored servers, and names of JSON files with servers. */
  readonly mcp?: readonly string[];
  readonly attach?: readonly string[];
  readonly metadata?: readonly string[];
}

/**
 * Builds the request of the command `run`. `source` is the name of a file, `-` for standard input, or the prompt itself. It is undefined
 * if the run has only a skill.
 * @throws Failure that names the source if the source cannot be read or is too large
 */
export function buildRunRequest(
  source: string | undefined,
  options: RunOptions,
  readStandardInput: () => string,
): RunAgentRequest {
  if (source === undefined && options.skill === undefined)
    throw new Failure('a prompt is needed: a file, - for standard input, or the prompt itself; or --skill', 2);
  const prompt = source === undefined ? '' : readPrompt(source, readStandardInput);
  if (source !== undefined && prompt.trim() === '')
    throw new Failure(
      `the prompt is empty${source.trim() === '' ? '' : ` (${source === '-' ? 'standard input' : source})`}`,
    );
  if (Buffer.byteLength(prompt) > maxPromptBytes)
    throw new Failure(`the prompt is too large: ${overLimit(Buffer.byteLength(prompt), maxPromptBytes)}`);
  // By default, the sandbox does not wait for a follow-up but ends when the run ends.
  const config = { idle_timeout_minutes: 0, ...configFrom(options) };
  const attachments = readAttachments(options.attach);
  const metadata = Object.fromEntries((options.metadata ?? []).map(parsePair));
  return {
    ...(source === undefined ? {} : { prompt }),
    ...(options.title ? { title: options.title } : {}),
    ...(options.mode ? { mode: options.mode } : {}),
    config,
    ...(attachments.length > 0 ? { attachments } : {}),
    ...(Object.keys(metadata).length > 0 ? { metadata } : {}),
  };
}

/** Returns the members of a configuration that the options set. @throws Failure that names the option if an option has a wrong value */
export function configFrom(options: RunOptions): AmbientAgentConfig {
  return {
    ...configFile(options.config),
    ...(options.idle === undefined ? {} : { idle_timeout_minutes: parseIdle(options.idle) }),
    ...(options.name ? { name: options.name } : {}),
    ...(options.model ? { model_id: options.model } : {}),
    ...(options.environment ? { environment_id: options.environment } : {}),
    ...(options.secret ? { secrets: options.secret.map((name) => ({ name })) } : {}),
    ...(options.refresh ? { refresh_environment: true } : {}),
    ...(options.skill ? { skill_spec: options.skill } : {}),
    ...(options.mcp ? { mcp_servers: mcpServersFrom(options.mcp) } : {}),
    ...(options.schema ? { output_schema: objectFrom(options.schema, '--schema', 'a JSON Schema') } : {}),
    ...(options.checks ? { checks: checksFrom(options.checks) } : {}),
    ...harness(options),
    ...retryOf(options),
    ...limit('max_cost_usd', '--max-cost', options.maxCost),
    ...limit('max_turns', '--max-turns', options.maxTurns),
    ...limit('max_duration_minutes', '--max-minutes', options.maxMinutes),
    ...(options.approval ? { approval_policy: options.approval } : {}),
    ...(options.ask
      ? { approval_policy: options.approval ?? 'ask', approval_rules: options.ask.map(approvalRule) }
      : {}),
    ...(options.onWorkerLoss ? { on_worker_loss: options.onWorkerLoss } : {}),
  };
}

/** Reads the members of a configuration from a JSON file. The service checks them. */
function configFile(file: string | undefined): AmbientAgentConfig {
  return file === undefined ? {} : objectFrom(file, '--config', 'an object, with members such as model_id');
}

/** Reads a list of checks from a JSON file. The service checks its entries. */
function checksFrom(file: string): AmbientAgentConfig['checks'] {
  const value = jsonFrom(file);
  if (!Array.isArray(value)) throw new Failure(`--checks: ${file} must contain a list of checks`, 2);
  return value;
}

/** Reads an object from a JSON file. @throws Failure with the words for the expected content */
function objectFrom(file: string, option: string, expected: string): Record<string, unknown> {
  const value = jsonFrom(file);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Failure(`${option}: ${file} must contain ${expected}`, 2);
  return value as Record<string, unknown>;
}

/** Reads a rule: `push`, `push=acme/*`, `host=api.example.com`, `tool=deploy*`, `command=terraform apply` or `write_outside=src`. */
function approvalRule(text: string): ApprovalRule {
  const [kind = '', ...rest] = text.split('=');
  return { [kind.trim()]: rest.length === 0 && kind.trim() === 'push' ? '*' : rest.join('=') };
}

function harness({ harness: type, harnessCommand: line }: RunOptions): Pick<AmbientAgentConfig, 'harness'> {
  if (line !== undefined && type === undefined)
    throw new Failure('--harness-command needs --harness, for example --harness acp', 2);
  if (type === undefined) return {};
  return { harness: { type, ...(line === undefined ? {} : { command: ['sh', '-c', line] }) } };
}

/** Returns the retry that the options ask for. The service checks codes and number. */
function retryOf({ retry, retries }: RunOptions): Pick<AmbientAgentConfig, 'retry'> {
  if (retry === undefined && retries !== undefined)
    throw new Failure('--retries needs --retry, for example --retry checks_failed', 2);
  if (retry === undefined) return {};
  return { retry: { on: retry, max: Number(retries ?? 1) } as AmbientAgentConfig['retry'] };
}

function limit(member: keyof RunBudget, option: string, text: string | undefined): RunBudget {
  if (text === undefined) return {};
  const value = Number(text);
  const isCount = member === 'max_turns';
  if (!(value > 0 && Number.isFinite(value)) || (isCount && !Number.isInteger(value)))
    throw new Failure(
      `${option} takes a ${isCount ? 'whole number' : 'number'} above 0, not ${JSON.stringify(text)}`,
      2,
    );
  return { [member]: value };
}

function parseIdle(text: string): number {
  const minutes = Number(text);
  if (text.trim() === '' || !(minutes >= 0 && minutes <= 60))
    throw new Failure(`--idle takes minutes from 0 to 60, not ${JSON.stringify(text)}`, 2);
  return minutes;
}
