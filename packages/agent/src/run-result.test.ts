import type { SubmitResult } from '@runyard/contract/runs/results';
import { expect, test } from 'vitest';
import type { FakeHarnessSupport } from '../../../test/fakes/harness-support.ts';
import { ended, fake, of, scripted, sh, start } from '../test/run.ts';

const config = { agent_config: { output_schema: { type: 'object', required: ['n'] } } };

/** The answer to a run that may comment once. */
const answerOf = (body: unknown) => {
  const { tool, input } = Object(body);
  return input.body === 'Hi'
    ? { status: 200, value: { url: `https://github.example/${tool}`, is_new: true } }
    : { status: 409, value: { title: 'Conflict', detail: 'The run has used comment 1 times.' } };
};
const environment = { config: { github_tools: { comment: 1 } } };

/** Makes the fake service accept results with a member `n`, and records all results. */
function accepting(submitted: SubmitResult[]) {
  return (fake: FakeHarnessSupport) => {
    fake.more = async ({ method, path, body }) => {
      if (`${method} ${path}` === 'POST /github-answers') return answerOf(body);
      if (`${method} ${path}` !== 'POST /result') return undefined;
      const given = body as SubmitResult;
      submitted.push(given);
      const isLarge = given.result_artifact_uid !== undefined;
      const accepted = isLarge || Object.hasOwn(Object(given.result), 'n');
      const faults = [{ path: '', message: "must have required property 'n'" }];
      return { status: 200, value: accepted ? { accepted } : { accepted, faults } };
    };
  };
}

test('a runbook returns the value of its block "json result", after its commands', async () => {
  const submitted: SubmitResult[] = [];
  const { prompt } = sh('echo work');
  await start(
    { ...config, prompt: `${prompt}\n\n\`\`\`json result\n{"n": 1}\n\`\`\`` },
    { prepare: accepting(submitted) },
  );
  await ended();
  expect(submitted).toEqual([{ turn: 1, result: { n: 1 } }]);
  expect(fake.finished).toMatchObject([{ turn: 1, success: true }]);
  expect(fake.text()).toContain('The result of the prompt was submitted.');
});

test('the file of RUNYARD_RESULT_FILE is submitted at the end of the turn', async () => {
  const submitted: SubmitResult[] = [];
  await start({ ...config, ...sh('echo \'{"n": 2}\' > "$RUNYARD_RESULT_FILE"') }, { prepare: accepting(submitted) });
  await ended();
  expect(submitted).toEqual([{ turn: 1, result: { n: 2 } }]);
  expect(fake.finished).toMatchObject([{ success: true }]);
});

test('a runbook without a result, and one whose result does not fit, fail at once, because no model can correct them', async () => {
  for (const [script, message] of [
    ['true', 'No result was submitted.'],
    ['echo 3 > "$RUNYARD_RESULT_FILE"', "must have required property 'n'"],
    ['echo { > "$RUNYARD_RESULT_FILE"', 'is not JSON'],
    ['ln -s /etc/passwd "$RUNYARD_RESULT_FILE"', 'No result was submitted.'],
  ] as const) {
    await start({ ...config, ...sh(script) }, { prepare: accepting([]) });
    await ended();
    expect(fake.finished).toMatchObject([
      { success: false, error: { code: 'result_invalid', message: expect.stringContaining(message) } },
    ]);
    await fake.close();
  }
});

test('a result that is too large for an answer becomes an artifact', async () => {
  const submitted: SubmitResult[] = [];
  const script = 'printf \'{"n":"%s"}\' "$(head -c 300000 /dev/zero | tr "\\0" x)" > "$RUNYARD_RESULT_FILE"';
  await start({ ...config, ...sh(script) }, { prepare: accepting(submitted) });
  await ended();
  expect(submitted).toMatchObject([{ turn: 1, result_artifact_uid: expect.any(String) }]);
  expect(fake.finished).toMatchObject([{ success: true }]);
});

test('an external harness submits with the MCP server of the run, reads the faults, and corrects the value', async () => {
  const submitted: SubmitResult[] = [];
  await start({ ...config, ...scripted('submits'), environment }, { prepare: accepting(submitted) });
  await ended();
  // The same server has the tools for GitHub that the environment allows.
  expect(fake.text()).toContain('submit_result,comment\n');
  expect(fake.text()).toContain('false https://github.example/comment\ntrue The run has used comment 1 times.');
  expect(submitted.map(({ result }) => result)).toEqual([{ wrong: 1 }, { n: 4 }]);
  expect(fake.text()).toContain("must have required property 'n'");
  expect(fake.finished).toMatchObject([{ turn: 1, success: true }]);
});

test('a harness that ends without a result gets three messages about it, and then the run fails', async () => {
  await start({ ...config, ...scripted('hello') }, { prepare: accepting([]) });
  await ended();
  const prompts = of('turn_started').map(({ prompt }) => prompt);
  expect(prompts).toHaveLength(4);
  expect(prompts[3]).toContain('this run must return a result. No result was submitted.');
  expect(fake.finished).toMatchObject([{ turn: 1, success: false, error: { code: 'result_invalid' } }]);
});

test('a turn with the mode plan needs no result', async () => {
  await start({ ...config, ...scripted('hello'), mode: 'plan' }, { prepare: accepting([]) });
  await ended();
  expect(of('turn_started')).toHaveLength(1);
  expect(fake.finished).toMatchObject([{ success: true }]);
});

test('the command github-answer prints the page of what was written, or why nothing was', async () => {
  const input = '\'{"body": "Hi"}\'';
  const script = `github-answer comment ${input}; echo '{"body": "x"}' | github-answer comment - || echo "code $?"; github-answer comment { || echo "code $?"; github-answer || echo "code $?"`;
  await start({ ...sh(`( ${script} ) 2>&1`), environment }, { prepare: accepting([]) });
  await ended();
  const output = of('action')
    .map(({ action_id }) => fake.output(action_id))
    .join('');
  expect(output).toMatch(
    /^https:\/\/github.example\/comment\ngithub-answer: The run has used comment 1 times.\ncode 1\n/,
  );
  expect(output).toMatch(/the input is not JSON: .*\ncode 1\nUsage: github-answer[\s\S]*code 2\n$/);
});
