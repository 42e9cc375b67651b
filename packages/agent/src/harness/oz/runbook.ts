import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { firstPart, shorten } from '@runyard/contract/wire/shorten';
import type { BuiltinVerdict } from '../../acp/outcome.ts';
import { planOnly } from '../../acp/plan-mode.ts';
import type { Verdict } from '../../approvals/approval-request.ts';
import type { Approvals } from '../../approvals/approvals.ts';
import { fs } from '../../builtin-modules.ts';
import type { RunKept } from '../../commands/kept-output.ts';
import { type CommandResult, runCommand } from '../../commands/run-command.ts';
import { newId } from '../../new-id.ts';
import type { SubmitValue } from '../../results/run-result.ts';
import { askFirst, refusalText, reportDenied } from './ask-first.ts';
import { markLines, type ScriptLine } from './failed-line.ts';
import { blocksAsMarkdown, type RunbookBlock, resultBlock, runbookBlocks } from './runbook-blocks.ts';
import { commandEnd, commandOutput, type Engine, type TurnVoice } from './session.ts';

const onlyBlocks = 'The model `runbook` only runs these blocks.';

const nothingToRun = `There was nothing to run. A runbook runs the fenced \`sh\` and \`bash\` blocks of its prompt, for example:

~~~
\`\`\`sh
ls -la
\`\`\`
~~~`;

const withoutModel =
  "No language model is configured, so only the prompt's fenced `sh` and `bash` blocks were run (model `runbook`).";

/** Keep this text the same as the three ways in the README. */
const waysToAddModel = `There are three ways to add a model; set the variable for the service, then start it again:
1. The key of a provider: RUNYARD_ANTHROPIC_API_KEY, RUNYARD_OPENAI_API_KEY or RUNYARD_GOOGLE_API_KEY.
2. A model on your own machine (Ollama, vLLM, llama.cpp): RUNYARD_MODEL_BASE_URL, for example http://127.0.0.1:11434/v1, and RUNYARD_MODEL_KEY if it wants a key.
3. Another server that speaks the protocol of a provider: the key of 1 with RUNYARD_ANTHROPIC_BASE_URL, RUNYARD_OPENAI_BASE_URL or RUNYARD_GOOGLE_BASE_URL.`;

/** Returns the text for a runbook whose machine was lost. `done`: the number of its commands that had run before. */
function afterLoss(done: number, all: number): string {
  const lost = 'The machine of this run was lost.';
  if (done === 0) return `${lost} The commands run again from the first.`;
  if (done === all) return `${lost} All ${all} commands were done before, and none runs again.`;
  return `${lost} The first ${done} of ${all} commands were done before and do not run again.`;
}

export interface RunbookOptions {
  cwd: string;
  env: Readonly<Record<string, string | undefined>>;
  backpressure: () => Promise<void> | undefined;
  approvals: Approvals;
  /** Absent: no outputs of commands are kept. */
  runKept?: RunKept | undefined;
  /** The decision of a person about a block for which an earlier sandbox asked for permission. */
  earlier?: AgentTask['decision'];
  /** Present if the machine was lost during the turn. The first prompt then skips the commands that have already run. */
  loss?: AgentTask['loss'];
  /** The state in which the run had ended before a person continued the run with this turn. */
  endedAs?: AgentTask['ended_as'];
  /** The runbook sets `doneBlocks` to the number of commands of the turn that need not run again if the machine is lost. */
  progress: { doneBlocks: number };
  /**
   * Present if the run is a runbook only because the service has no language model. `explain`: the first text of the run explains how
   * to add a model. `mention`: the text only says that no model is configured.
   */
  noModel?: 'explain' | 'mention' | undefined;
  /** Submits the value of the block `json result` of the prompt; absent: the run returns no result. */
  submitResult?: SubmitValue | undefined;
}

/** Linux refuses a single argument over 128 KB (MAX_ARG_STRLEN); longer scripts go into a file. */
const maxInlineScript = 100 * 1024;

/** Creates the engine that uses no language model and only runs the fenced shell blocks of the prompt. */
export function runbookEngine(options: RunbookOptions): Engine {
  let { earlier, loss, noModel } = options;
  /** True: the previous turn succeeded, in this sandbox or an earlier sandbox. */
  let hasSucceeded = options.endedAs === 'SUCCEEDED';
  const { progress } = options;
  /** Returns an explanation of how to add a model, for the first text of a run without a model. All later calls return ''. */
  const explanation = (): string => {
    if (noModel !== 'explain') return '';
    noModel = 'mention';
    return `\n\n${withoutModel} ${waysToAddModel}`;
  };
  const hasResult = (prompt: string) => options.submitResult !== undefined && resultBlock(prompt) !== undefined;
  /** Submits the value of the block `json result`. Returns a sentence about it. */
  const submitBlock = async (prompt: string): Promise<string> => {
    try {
      const answer = await options.submitResult?.(JSON.parse(resultBlock(prompt) ?? ''));
      return answer?.ok ? 'The result of the prompt was submitted.' : (answer?.message ?? '');
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return `The block \`json result\` is not JSON: ${error.message}.`;
    }
  };
  const play: Engine = async ({ prompt, voice, signal }) => {
    const answered = earlier;
    earlier = undefined;
    const lost = loss;
    loss = undefined;
    progress.doneBlocks = 0;
    const denied = answered && (await takeUp(answered, voice));
    const blocks = [
      ...(answered && !denied ? runbookBlocks(answered.request.resume ?? '') : []),
      ...runbookBlocks(prompt),
    ];
    if (blocks.length === 0 && denied) return { stopReason: 'end_turn', verdict: denied };
    if (blocks.length === 0 && hasResult(prompt)) {
      const said = await submitBlock(prompt);
      await voice.say(said);
      return { stopReason: 'end_turn', verdict: { success: true, message: '' } };
    }
    if (blocks.length === 0) {
      if (hasSucceeded) {
        await voice.say(`${nothingToRun}\n\nThe message has no such block, so the run stays SUCCEEDED.`);
        return { stopReason: 'end_turn', verdict: { success: true, message: '' } };
      }
      await voice.say(nothingToRun);
      const ways = noModel === 'explain' ? ` ${waysToAddModel}` : '';
      noModel = noModel && 'mention';
      const message = `There was nothing to run: ${noModel ? 'no language model is configured, and ' : ''}the prompt has no fenced \`sh\` or \`bash\` block. ${onlyBlocks}${ways}`;
      return { stopReason: 'end_turn', verdict: { success: false, code: 'invalid_request', message } };
    }
    if (prompt.includes(planOnly)) {
      await voice.say(
        `Mode plan, so nothing was run. This is what would be run:\n\n${blocksAsMarkdown(blocks)}${explanation()}`,
      );
      return { stopReason: 'end_turn', verdict: { success: true, message: '' } };
    }
    const done = Math.min(lost?.done_blocks ?? 0, blocks.length);
    if (lost !== undefined) await voice.say(`${afterLoss(done, blocks.length)}\n\n`);
    progress.doneBlocks = done;
    const remainingBlocks = blocks.slice(done);
    const results: BlockResult[] = [];
    let failed: string | undefined;
    for (const [index, block] of remainingBlocks.entries()) {
      const result = await runBlock(block, remainingBlocks.slice(index), options, voice, signal);
      if (result === undefined || signal.aborted)
        return { stopReason: 'cancelled', verdict: { success: false, message: 'cancelled' } };
      if ('decision' in result) {
        const message = `Command ${done + index + 1}, \`${shownCommand(block)}\`, was ${refusalText(result)}`;
        await voice.say(`${summary(remainingBlocks, results)}\n\n${message}.`);
        return { stopReason: 'end_turn', verdict: { success: false, message } };
      }
      results.push(result);
      if (succeeded(result)) continue;
      failed ??= `Command ${done + results.length} ${failure(block, result)}`;
      if (!block.continueOnError) break;
    }
    const ended =
      results.length < remainingBlocks.length ||
      results.some((result, index) => !succeeded(result) && !remainingBlocks[index]?.continueOnError);
    const said = !ended && hasResult(prompt) ? `\n\n${await submitBlock(prompt)}` : '';
    await voice.say(`${summary(remainingBlocks, results)}${said}${explanation()}`);
    return {
      stopReason: 'end_turn',
      verdict: ended && failed !== undefined ? { success: false, message: failed } : { success: true, message: '' },
    };
  };
  return async (turn) => {
    const end = await play(turn);
    hasSucceeded = end.verdict?.success === true;
    return end;
  };
}

/**
 * Reports the decision about a block for which an earlier sandbox asked. If the block was denied, returns the verdict of the turn,
 * because the later blocks do not run either.
 */
async function takeUp(
  answered: NonNullable<AgentTask['decision']>,
  voice: TurnVoice,
): Promise<BuiltinVerdict | undefined> {
  const { request, decision, message } = answered;
  if (decision === 'approve' || (decision === undefined && message === undefined)) return undefined;
  const [command = ''] = request.title.trim().split('\n', 1);
  const verdict: Verdict = { decision: 'deny', by: 'person', ...(message === undefined ? {} : { message }) };
  const text = `The command \`${shortCommand(command)}\` was ${refusalText(verdict)}`;
  await voice.say(`${text}.`);
  return { success: false, message: text };
}

/** `failedLine` is the line that caused the exit code of the block, if the line is known. */
type BlockResult = CommandResult & { failedLine?: ScriptLine | undefined };

const succeeded = (result: CommandResult) => result.outcome === 'exited' && result.exitCode === 0;

async function runBlock(
  block: RunbookBlock,
  left: readonly RunbookBlock[],
  options: RunbookOptions,
  voice: TurnVoice,
  signal: AbortSignal,
): Promise<BlockResult | Verdict | undefined> {
  if (signal.aborted) return undefined;
  const toolCallId = newId();
  const input = { command: block.script };
  const [firstLine = ''] = block.script.trim().split('\n', 1);
  const asks = options.approvals.policy !== 'auto-approve';
  await voice.update({
    sessionUpdate: 'tool_call',
    toolCallId,
    name: 'shell',
    kind: 'execute',
    title: firstPart(firstLine, 200),
    status: asks ? 'pending' : 'in_progress',
    rawInput: input,
  });
  if (asks) {
    const planned = { id: toolCallId, name: 'shell', category: 'command' as const, input, title: block.script.trim() };
    const ask = () => askFirst({ ...planned, resume: blocksAsMarkdown(left) }, options.approvals, signal);
    const verdict = await ask().catch((error: unknown) => {
      if (signal.aborted) return null;
      throw error;
    });
    if (verdict === null) return undefined;
    if (verdict && verdict.decision !== 'approve') {
      await reportDenied(voice, toolCallId, refusalText(verdict));
      return verdict;
    }
    await voice.update({ sessionUpdate: 'tool_call_update', toolCallId, status: 'in_progress' });
  }
  options.approvals.resume = blocksAsMarkdown(left);
  let said: Promise<void> = Promise.resolve();
  const marked = await markLines(block, { cwd: options.cwd, env: options.env, signal });
  const script = await scriptArgument(marked?.script ?? block.script);
  try {
    const result = await (options.runKept ?? runCommand)(
      {
        argv: [...interpreter(block.shell), ...script.argv],
        cwd: options.cwd,
        env: options.env,
        signal,
        onOutput: (text) => {
          said = voice.update(commandOutput(toolCallId, text));
        },
        backpressure: options.backpressure,
      },
      { actionId: toolCallId, title: firstLine },
    );
    // Count the block before reporting its result, because a checkpoint may be taken at any moment, and a block that has run must not run
    // again.
    if (succeeded(result) || block.continueOnError) options.progress.doneBlocks += 1;
    await said;
    await voice.update(commandEnd(toolCallId, result));
    return succeeded(result) ? result : { ...result, failedLine: await marked?.failedLine() };
  } finally {
    options.approvals.resume = undefined;
    await script.remove();
    await marked?.remove();
  }
}

/**
 * Returns the shell with the options of GitHub Actions for `shell: sh` and `shell: bash`. With `-e`, a failing line fails its block; bash
 * also gets `pipefail`.
 */
function interpreter(shell: RunbookBlock['shell']): [string, ...string[]] {
  return shell === 'bash' ? ['bash', '--noprofile', '--norc', '-eo', 'pipefail'] : ['sh', '-e'];
}

async function scriptArgument(script: string): Promise<{ argv: string[]; remove: () => Promise<void> }> {
  if (Buffer.byteLength(script) <= maxInlineScript) return { argv: ['-c', script], remove: async () => {} };
  const folder = await fs.promises.mkdtemp(join(tmpdir(), 'runyard-script-'));
  const file = join(folder, 'script');
  await fs.promises.writeFile(file, script, { mode: 0o600 });
  return { argv: [file], remove: () => fs.promises.rm(folder, { recursive: true, force: true }) };
}

/** Returns a phrase about the failure of a block: `exited with code 4 at line 3: …`. */
function failure(block: RunbookBlock, result: BlockResult): string {
  return result.outcome === 'not_started'
    ? 'could not be started'
    : `exited with code ${result.exitCode}${failedAt(block, result)}`;
}

/** Returns the line that caused the exit code of a failed block: ` at line 3: …`; empty if the line is unknown. */
function failedAt(block: RunbookBlock, { failedLine }: BlockResult): string {
  if (failedLine === undefined) return '';
  const at = block.script.trim().includes('\n') ? ` at line ${failedLine.number}` : '';
  return `${at}: \`${shortCommand(failedLine.text.trim())}\``;
}

const shortCommand = (command: string): string => shorten(command, 80).replaceAll('`', "'");

function shownCommand(block: RunbookBlock | undefined): string {
  const [command = ''] = block?.script.trim().split('\n', 1) ?? [];
  return shortCommand(command);
}

/** Returns the failed line of a block with several lines. A block of one line already shows this line as its title. */
function lineOfCode(block: RunbookBlock | undefined, result: BlockResult): string {
  return block?.script.trim().includes('\n') ? failedAt(block, result) : '';
}

const durationText = (ms: number): string => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

function summary(blocks: readonly RunbookBlock[], results: readonly BlockResult[]): string {
  const lines = results.map(
    (result, index) =>
      `${index + 1}. \`${shownCommand(blocks[index])}\`: exit code ${result.exitCode}${lineOfCode(blocks[index], result)} (${durationText(result.durationMs)})`,
  );
  const ran =
    results.length === blocks.length
      ? `Ran all ${blocks.length} commands`
      : `Ran ${results.length} of ${blocks.length} commands and stopped${results.some((result) => !succeeded(result)) ? ' at the failure' : ''}`;
  if (results.length === 0) return 'Ran no command.';
  return `${blocks.length === 1 ? 'Ran 1 command' : ran}:\n\n${lines.join('\n')}`;
}
