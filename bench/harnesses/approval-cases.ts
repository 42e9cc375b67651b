/** The test cases in which a harness program asks a person before it acts. */
import { randomUUID } from 'node:crypto';
import type { RunItem } from '@runyard/contract/runs/runs';
import { begin, followUp, type Ground, must, textOf, until, untilEnded, untilSucceeded } from './ground.ts';
import { permissiveProject, projectInstructions } from './permissive-project.ts';

/** The settings of the project allow every tool, and must have no effect. */
export async function askInProject(ground: Ground): Promise<string> {
  const before = ground.models.requests.length;
  const result = await ask(ground, { environment_id: await permissiveProject(ground) });
  const sent = JSON.stringify(ground.models.requests.slice(before).map(({ body }) => body));
  must(sent.includes(projectInstructions), 'the model does not get the instructions of the project');
  return result;
}

/** A person approves a command for the rest of the run and the change of a file, and denies another command. */
export async function ask(ground: Ground, config: object = {}): Promise<string> {
  // All requests of this run have its prompt, and so this mark. A program may still send requests for the run of the case before.
  const mark = `ran-${randomUUID()}`;
  const seen = () =>
    ground.models.requests
      .map(({ body }) => JSON.stringify(body))
      .filter((body) => body.includes(mark))
      .join('\n');
  const id = await begin(
    ground,
    [
      // The output shows when the command ran. It is read in the next request to the model, because Gemini CLI does not report outputs.
      { shell: `date +${mark}-at-%s%3N` },
      { shell: `date +${mark}-at-%s%3N` },
      { write: '/workspace/b.txt', text: 'b\n' },
      // The prompt must not contain the name of the file that the command would make.
      { shell: "touch /workspace/forb''idden-file" },
    ],
    { config: { approval_policy: 'ask', idle_timeout_minutes: 1, ...config } },
  );
  await decide(ground, id, { decision: 'approve', allow_for: 'run' });
  const approvedMs = Date.now();
  // The second command is the same as the first and is allowed for the rest of the run, so the next request is about the file.
  const write = await decide(ground, id, { decision: 'approve' });
  must(JSON.stringify(write).includes('b.txt'), `it asks ${write?.title}`);
  const times = [...seen().matchAll(/-at-(\d{13})/g)].map(([, time]) => Number(time));
  must(new Set(times).size === 2, `the first command ran ${new Set(times).size} times`);
  must(Math.min(...times) > approvedMs - 1_000, 'a command ran before the approval');
  await decide(ground, id, { decision: 'deny' });
  // Some programs end the turn after a denial, and the others end it after their last step.
  must((await untilEnded(ground, id)).state !== 'BLOCKED', 'it asks again after the denial');
  await followUp(ground, id, { shell: 'ls /workspace | sed s/^/listed-/' });
  await decide(ground, id, { decision: 'approve' });
  must((await untilEnded(ground, id)).state === 'SUCCEEDED', 'the run failed');
  must(seen().includes('listed-b.txt'), 'the approved changes are not there');
  must(!seen().includes('forbidden-file'), 'a denied command ran');
  must(!(await textOf(ground, id)).includes('ran_without_question'), 'an action ran without a question');
  return 'asks for each';
}

/** Waits for a request of the agent, and answers it after a second. Returns the request. */
async function decide(ground: Ground, id: string, answer: object): Promise<RunItem['blocked_on']> {
  const {
    blocked_on: asked,
    state,
    status_message: status,
  } = await until(
    ground,
    id,
    (run) => run.state === 'BLOCKED' || !['QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS'].includes(run.state),
  );
  must(state === 'BLOCKED', `it did not ask: ${state} ${status?.message}`);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const request = { ...answer, request_id: asked?.request_id };
  await ground.system.call('POST', `/agent/runs/${id}/followups`, request);
  await until(ground, id, (run) => run.blocked_on?.request_id !== asked?.request_id);
  return asked;
}

/** A rule names the second of two commands, so only this command waits for a person. */
export async function askByRule(ground: Ground): Promise<string> {
  const config = { approval_policy: 'ask', approval_rules: [{ command: 'touch' }], idle_timeout_minutes: 1 };
  const id = await begin(ground, [{ shell: 'mkdir /tmp/unasked' }, { shell: 'touch /tmp/unasked/asked' }], { config });
  const { blocked_on: asked } = await until(ground, id, ({ state }) => state === 'BLOCKED');
  must(JSON.stringify(asked).includes('touch'), `it asks ${asked?.title}`);
  must(asked?.rest_of_run === 'commands with the words touch', `it offers ${asked?.rest_of_run}`);
  const answer = { decision: 'approve', allow_for: 'run', request_id: asked?.request_id };
  await ground.system.call('POST', `/agent/runs/${id}/followups`, answer);
  await untilSucceeded(ground, id);
  return 'asks for the named command only';
}
