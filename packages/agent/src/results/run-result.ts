import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { maxResultArtifactBytes, maxResultAttempts, maxResultBytes } from '@runyard/contract/limits';
import type { ResultFault, SubmitResultResponse } from '@runyard/contract/runs/results';
import { storableJson } from '@runyard/contract/wire/storable-json';
import type { ArtifactRequest, ArtifactResult } from '../artifacts/report.ts';
import { openRegularFile } from '../open-regular-file.ts';
import type { ServiceClient } from '../service/client.ts';
import { ServiceRefusal } from '../service/errors.ts';

/** The answer to a submission: a text for the agent that submitted the value. */
export type SubmitAnswer = { readonly ok: boolean; readonly message: string };

/** Submits the value of a run's result, and returns the answer for the harness. */
export type SubmitValue = (value: unknown) => Promise<SubmitAnswer>;

/** State at the end of a turn. `problem`: why the turn has no result. `mayTryAgain`: true if the harness gets another attempt. */
export type ResultState =
  | { readonly kind: 'submitted' }
  | { readonly kind: 'missing'; readonly problem: string; readonly mayTryAgain: boolean };

/** The result that a run must return. Each turn needs its own result. */
export interface RunResult {
  /** Path of a file. At the end of a turn, its JSON is submitted if nothing else was submitted in the turn. */
  readonly file: string;
  /** Forgets what earlier turns submitted. */
  beginTurn(): Promise<void>;
  readonly submit: SubmitValue;
  /** Submits the file if necessary. A problem counts as an attempt. */
  endTurn(): Promise<ResultState>;
}

export interface RunResultOptions {
  readonly client: Pick<ServiceClient, 'ask'>;
  /** A folder that only this user can enter, for the file. */
  readonly folder: string;
  readonly reportArtifact: (request: ArtifactRequest, cwd: string) => Promise<ArtifactResult>;
  /** Returns the number of the current turn. */
  readonly turn: () => number;
  readonly signal: AbortSignal;
}

export function runResult({ client, folder, reportArtifact, turn, signal }: RunResultOptions): RunResult {
  const file = join(folder, 'result.json');
  let isSubmitted = false;
  /** Number of times that a problem went back to the harness in this turn. */
  let attempts = 0;
  let problem = noResult;

  /** Counts a problem. Returns true if the harness may try again. */
  function countProblem(text: string): boolean {
    problem = text;
    attempts += 1;
    return attempts <= maxResultAttempts;
  }

  async function send(json: string): Promise<SubmitResultResponse> {
    if (Buffer.byteLength(json) <= maxResultBytes)
      return await client.ask('POST', 'result', { body: { turn: turn(), result: JSON.parse(json) }, signal });
    const path = join(folder, 'large-result.json');
    await writeFile(path, json, { mode: 0o600 });
    try {
      const request = { type: 'FILE', path, title: 'Result', mime_type: 'application/json' };
      const artifact = await reportArtifact(request, folder);
      if (!artifact.ok) return { accepted: false, faults: [{ path: '', message: artifact.message }] };
      const body = { turn: turn(), result_artifact_uid: artifact.artifact_uid };
      return await client.ask('POST', 'result', { body, signal, idleTimeoutMs: 60_000 });
    } finally {
      await rm(path, { force: true });
    }
  }

  async function submit(value: unknown): Promise<SubmitAnswer> {
    if (value === undefined) return refused('The call needs the member `result` with the value.');
    const json = storableJson(value);
    if (Buffer.byteLength(json) > maxResultArtifactBytes)
      return refused(`The result has more than ${maxResultArtifactBytes / 1024 / 1024} MB. Make it smaller.`);
    try {
      const answer = await send(json);
      const unpacked = answer.accepted ? undefined : valueInText(value);
      const { accepted, faults } = unpacked === undefined ? answer : await send(unpacked);
      if (!accepted) return refused(faultsText(faults));
    } catch (error) {
      if (error instanceof ServiceRefusal) return refused(error.detail);
      throw error;
    }
    isSubmitted = true;
    return { ok: true, message: 'The result was accepted. A later call in this turn replaces it.' };
  }

  function refused(text: string): SubmitAnswer {
    const mayTryAgain = !isSubmitted && countProblem(text);
    const next = isSubmitted
      ? 'The result that was accepted before still counts.'
      : mayTryAgain
        ? `Correct the value and submit it again; attempts left: ${maxResultAttempts + 1 - attempts}.`
        : 'No attempt is left in this turn.';
    return { ok: false, message: `${text}\n${next}` };
  }

  async function submitFile(): Promise<void> {
    const text = await readText(file);
    if (text === undefined) return;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
      problem = `The file with the result is not JSON: ${(error as Error).message}.`;
      return;
    }
    const before = attempts;
    await submit(value);
    // The end of the turn counts this attempt.
    attempts = before;
  }

  return {
    file,
    async beginTurn() {
      [isSubmitted, attempts, problem] = [false, 0, noResult];
      await rm(file, { force: true, recursive: true });
    },
    submit,
    async endTurn() {
      if (!isSubmitted) await submitFile();
      if (isSubmitted) return { kind: 'submitted' };
      return { kind: 'missing', problem, mayTryAgain: countProblem(problem) };
    },
  };
}

const noResult = 'No result was submitted.';

/** Returns the JSON in a text, because some models write the value as a text. Undefined if the value is not such a text. */
function valueInText(value: unknown): string | undefined {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return undefined;
  try {
    return storableJson(JSON.parse(value));
  } catch {
    return undefined;
  }
}

const faultsText = (faults: readonly ResultFault[] = []): string =>
  `The result does not match the schema:\n${faults.map(({ path, message }) => `- ${path === '' ? 'the result' : path}: ${message}`).join('\n')}`;

/** Reads a text file that a command of the sandbox wrote; undefined if there is none. */
async function readText(path: string): Promise<string | undefined> {
  const opened = await openRegularFile(path, { follows: false }).catch(() => undefined);
  if (opened === undefined) return undefined;
  try {
    if (opened.size > maxResultArtifactBytes) return undefined;
    const { buffer, bytesRead } = await opened.file.read(Buffer.alloc(opened.size), 0, opened.size, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await opened.file.close();
  }
}
