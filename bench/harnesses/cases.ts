/**
 * The test cases for the harness programs (Claude Code, Codex and others). A case returns the result for the page, and throws if the
 * program fails.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { formatBytes } from '@runyard/contract/wire/byte-size';
import { bundleMcpServers } from '../../test/fakes/mcp-servers.ts';
import { eventually } from '../../test/support/system.ts';
import { ask, askByRule, askInProject } from './approval-cases.ts';
import {
  begin,
  beginWith,
  followUp,
  type Ground,
  must,
  say,
  stepsOf,
  testModels,
  textOf,
  until,
  untilEnded,
  untilSucceeded,
} from './ground.ts';
import { commitAndPush, pullRequest } from './repository-cases.ts';

export interface Case {
  readonly name: string;
  readonly test: (ground: Ground) => Promise<string>;
}

// `cat` continues if a process ends before its file is read; `awk` would stop.
const sumOfMemory = 'cat /proc/[0-9]*/status 2>/dev/null | awk \'/VmRSS/{s+=$2} END{print "memory-kb " s}\'';
const mark = '4711.5';
// The command must not contain a command substitution, because Gemini CLI refuses such commands.
const countLeft = "grep -lx sleep /proc/[0-9]*/comm 2>/dev/null | wc -l | sed 's/^/left-/'";
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Repeats a command so often that the turn takes minutes, even if the program does not wait for the end of each command. */
const manyTimes = (shell: string) => Array.from({ length: 20 }, () => ({ shell }));

const seconds = (from: number): string => `${((performance.now() - from) / 1000).toFixed(1)} s`;

async function shellTurn(ground: Ground): Promise<string> {
  const from = performance.now();
  const id = await begin(ground, [{ shell: 'echo hello; exit 3' }, { shell: sumOfMemory }]);
  const run = await untilSucceeded(ground, id);
  const conversationText = await textOf(ground, id);
  must((run.request_usage?.total_tokens ?? 0) >= 360, 'its tokens are not counted');
  const exit = /"exit_code":(\d+)/.exec(conversationText)?.[1];
  const memory = Math.round(Number(/memory-kb (\d+)/.exec(conversationText)?.[1] ?? 0) / 1024);
  must(memory > 0, 'the second command gave no output');
  return `${seconds(from)}, ${memory} MB, exit code ${exit ?? 'not given'}`;
}

/** A command prints 1.3 MB. Returns how much of it the program passes on, and where the run has it. */
async function longOutput(ground: Ground): Promise<string> {
  const id = await begin(ground, [{ shell: 'seq 1 200000' }]);
  const { artifacts = [] } = await untilSucceeded(ground, id);
  const [kept] = artifacts.flatMap((each) => (each.artifact_type === 'FILE' ? [each.data.size_bytes ?? 0] : []));
  if (kept !== undefined) return `${formatBytes(kept)} as an artifact`;
  const contents = (await stepsOf(ground, id)).flatMap(({ messages }) => messages.flatMap(({ content }) => content));
  const bytes = contents.map((each) =>
    each.type === 'action_result' ? Buffer.byteLength(each.output?.text ?? '') : 0,
  );
  return Math.max(...bytes) < 1000 ? 'no output' : `${formatBytes(Math.max(...bytes))} in the conversation`;
}

async function fileWrite(ground: Ground): Promise<string> {
  const id = await begin(ground, [
    { write: '/workspace/a.txt', text: 'one\ntwo\n' },
    { shell: 'wc -l /workspace/a.txt' },
  ]);
  await untilSucceeded(ground, id);
  const conversationText = await textOf(ground, id);
  must(/[23] \/workspace\/a.txt/.test(conversationText), 'the file was not written');
  if (conversationText.includes('@@ -0,0 +1')) return 'with its diff';
  return conversationText.includes('cat >') ? 'by a command' : 'without a diff';
}

/** Does the work of the other cases with the newest flagship model, because a program may treat it differently. */
async function newestModel(ground: Ground): Promise<string> {
  const [, model] = testModels[ground.preset.type];
  const id = await begin(
    ground,
    [
      { write: '/workspace/c.txt', text: 'one\ntwo\n' },
      { shell: 'cp /workspace/c.txt /workspace/d.txt' },
      { shell: 'wc -l /workspace/d.txt' },
    ],
    { config: { model_id: model } },
  );
  await untilSucceeded(ground, id);
  must(/[23] \/workspace\/d.txt/.test(await textOf(ground, id)), 'the files were not written');
  return model;
}

async function secondTurn(ground: Ground): Promise<string> {
  const id = await begin(ground, [{ shell: 'echo first > /tmp/kept' }], { idleMinutes: 5 });
  await untilEnded(ground, id);
  await followUp(ground, id, { shell: 'cat /tmp/kept' });
  await eventually('second turn', async () => (await stepsOf(ground, id)).length >= 2, 60_000);
  const run = await untilEnded(ground, id);
  must(run.state === 'SUCCEEDED', `${run.state}: ${run.status_message?.message}`);
  must(JSON.stringify((await stepsOf(ground, id)).at(-1)).includes('first'), 'the sandbox was another one');
  await ground.system.call('POST', `/agent/runs/${id}/interrupt`).catch(() => {});
  return 'works';
}

async function interrupt(ground: Ground): Promise<string> {
  const id = await begin(ground, manyTimes(`touch /tmp/begun; sleep ${mark} & sleep ${mark}`), { idleMinutes: 5 });
  await eventually('command', async () => (await textOf(ground, id)).includes('"type":"action"'), 60_000);
  const from = performance.now();
  await ground.system.call('POST', `/agent/runs/${id}/interrupt`);
  await untilEnded(ground, id);
  const took = seconds(from);
  await followUp(ground, id, { shell: countLeft });
  await eventually('turn after the interrupt', async () => (await textOf(ground, id)).includes('left-'), 60_000);
  await untilEnded(ground, id);
  must((await textOf(ground, id)).includes('left-0'), 'a process of the interrupted turn was left');
  return `${took}, nothing left, next turn works`;
}

async function cancel(ground: Ground): Promise<string> {
  const id = await begin(ground, manyTimes(`touch /tmp/begun; sleep ${mark}`));
  await eventually('command', async () => (await textOf(ground, id)).includes('"type":"action"'), 60_000);
  const from = performance.now();
  await ground.system.call('POST', `/agent/runs/${id}/cancel`);
  await until(ground, id, (run) => run.is_sandbox_running === false);
  must((await ground.system.run(id)).state === 'CANCELLED', 'it is not CANCELLED');
  return seconds(from);
}

async function continuation(ground: Ground): Promise<string> {
  const id = await begin(ground, [{ shell: 'echo the-earlier-word' }]);
  await untilEnded(ground, id);
  await until(ground, id, (run) => run.is_sandbox_running === false);
  const before = ground.models.requests.length;
  await followUp(ground, id, { shell: 'echo second' });
  await eventually('continuation', async () => (await stepsOf(ground, id)).length >= 2, 60_000);
  const run = await untilEnded(ground, id);
  must(run.state === 'SUCCEEDED', `${run.state}: ${run.status_message?.message}`);
  const requestTexts = JSON.stringify(ground.models.requests.slice(before).map(({ body }) => body));
  must(requestTexts.includes('the-earlier-word'), 'the model does not get the earlier conversation');
  return requestTexts.includes('<conversation>') ? 'as text' : 'session/load';
}

/** Starts a plan whose model runs a command that writes a file. */
async function plan(ground: Ground): Promise<string> {
  const id = await begin(ground, [{ shell: 'echo planned > made' }], { mode: 'plan' });
  const run = await untilEnded(ground, id);
  const text = await textOf(ground, id);
  if (run.state === 'FAILED') {
    must(run.status_message?.message.includes('made was changed') === true, `${run.status_message?.message}`);
    return text.includes('mode_not_set') ? 'stopped, without a mode of its own' : 'stopped';
  }
  must(run.state === 'SUCCEEDED', `${run.state}: ${run.status_message?.message}`);
  must(!text.includes('"state":"completed"'), 'the command ran, and the turn was not stopped');
  return 'refused by the program';
}

/**
 * Starts the MCP server only after 3 s. A program that does not wait for its MCP servers has sent its first request to the model by then.
 */
const slowServer = 'sleep 3; exec node /workspace/attachments/everything.mjs stdio';

async function mcpTool(ground: Ground): Promise<string> {
  const data = (await bundleMcpServers()).everything.toString('base64');
  const id = await begin(ground, [{ tool: 'echo', input: { message: 'through-mcp' } }], {
    attachments: [{ file_name: 'everything.mjs', mime_type: 'text/javascript', data }],
    config: {
      mcp_servers: { everything: { command: 'sh', args: ['-c', slowServer] } },
    },
  });
  const run = await untilEnded(ground, id);
  must(run.state === 'SUCCEEDED', `${run.state}: ${run.status_message?.message}`);
  const conversationText = await textOf(ground, id);
  must(conversationText.includes('Echo: through-mcp'), 'the tool gave nothing');
  return /"name":"everything\.echo"/.test(conversationText) ? 'works' : 'works, under another name';
}

/** The model calls the usual tool of a server whose other tools have odd schemas. */
async function oddMcpTools(ground: Ground): Promise<string> {
  const data = readFileSync(path.join(import.meta.dirname, 'odd-mcp-server.mjs')).toString('base64');
  const id = await begin(ground, [{ tool: 'echo', input: { message: 'beside-odd-tools' } }], {
    attachments: [{ file_name: 'odd.mjs', mime_type: 'text/javascript', data }],
    config: { mcp_servers: { everything: { command: 'node', args: ['/workspace/attachments/odd.mjs'] } } },
  });
  const run = await untilEnded(ground, id);
  must(run.state === 'SUCCEEDED', `${run.state}: ${run.status_message?.message}`);
  must((await textOf(ground, id)).includes('Echo: beside-odd-tools'), 'the usual tool gave nothing');
  return 'works';
}

async function image(ground: Ground): Promise<string> {
  const before = ground.models.requests.length;
  const id = await begin(ground, [{ shell: 'true' }], {
    attachments: [{ file_name: 'dot.png', mime_type: 'image/png', data: png }],
  });
  must((await untilEnded(ground, id)).state === 'SUCCEEDED', 'the run failed');
  const sent = JSON.stringify(ground.models.requests.slice(before).map(({ body }) => body));
  if (sent.includes('iVBORw0KGgo')) return 'reaches the model';
  must((await textOf(ground, id)).includes('image_not_sent'), 'it got lost without a notice');
  return 'not sent, said so';
}

/** Texts that programs may misread as commands, options or files. */
const oddPrompts = [
  '/init the project',
  '/status gives 500',
  '/compact the sources',
  '-v and @/etc/hostname',
  'Grüße 日本語 🎉',
];

async function oddPrompt(ground: Ground): Promise<string> {
  const [first = '', ...further] = oddPrompts;
  const before = ground.models.requests.length;
  const id = await beginWith(ground, first, { idleMinutes: 1 });
  await untilEnded(ground, id);
  for (const [index, text] of further.entries()) {
    await say(ground, id, text);
    await eventually('turn', async () => (await stepsOf(ground, id)).length >= index + 2, 60_000);
    await untilEnded(ground, id);
  }
  const requestTexts = JSON.stringify(ground.models.requests.slice(before).map(({ body }) => body));
  const lost = oddPrompts.filter((text) => !requestTexts.includes(text));
  must(lost.length === 0, `the model does not get ${lost.join(', ')}`);
  return 'reaches the model as text';
}

async function refusal(ground: Ground): Promise<string> {
  // Make up to 1,000 requests fail and not only one, because a program also sends requests outside of the turn, and the program of the
  // case before this case may still send requests.
  ground.models.misbehave({ kind: 'status', status: 400, message: 'the provider refuses this' }, 1_000);
  const id = await begin(ground, [{ shell: 'true' }]);
  const run = await untilEnded(ground, id);
  ground.models.forgive();
  must(run.state === 'FAILED', `the run is ${run.state}`);
  must(
    run.status_message?.message?.includes('the provider refuses this') === true,
    `it says ${run.status_message?.message}`,
  );
  return 'named in the failure';
}

export const cases: readonly Case[] = [
  { name: 'shell turn', test: shellTurn },
  { name: 'command that prints 1.3 MB', test: longOutput },
  { name: 'file write', test: fileWrite },
  { name: 'newest model', test: newestModel },
  { name: 'commit and push', test: (ground) => commitAndPush(ground) },
  { name: 'pull request, then a message', test: pullRequest },
  { name: 'a push that needs an approval', test: (ground) => commitAndPush(ground, true) },
  { name: 'follow-up, same sandbox', test: secondTurn },
  { name: 'interrupt', test: interrupt },
  { name: 'cancel', test: cancel },
  { name: 'continuation, new sandbox', test: continuation },
  { name: 'approval `ask`', test: (ground) => ask(ground) },
  { name: '`ask`, settings of the project allow all', test: askInProject },
  { name: '`ask` by a rule', test: askByRule },
  { name: 'mode `plan`, a command that writes', test: plan },
  { name: 'MCP tool over stdio', test: mcpTool },
  { name: 'MCP server with odd tools', test: oddMcpTools },
  { name: 'image', test: image },
  { name: 'prompt like a command', test: oddPrompt },
  { name: 'refusal of the model', test: refusal },
];
