import type { Decision } from '@runyard/contract/approvals';
import { connect } from '../api.ts';
import type { Context } from '../context.ts';
import { Failure } from '../failure.ts';
import { harmlessLine } from '../live/harmless.ts';

/** Sends a follow-up: an answer if the run asks something, else a new instruction. */
export async function send(context: Context, runId: string, message: string): Promise<void> {
  await connect(context).sendFollowup({ params: { runId }, body: { message } });
  context.out(`sent; follow: bin/runyard logs ${runId} --follow\n`);
}

/**
 * Approves or denies the present request of the run. A later request is not decided.
 * @throws Failure if the run asks nothing
 */
export async function decide(
  context: Context,
  runId: string,
  decision: Decision,
  message: string | undefined,
): Promise<void> {
  const client = connect(context);
  const { state, blocked_on: asked } = await client.getRun({ params: { runId } });
  if (!asked) throw new Failure(`the run is ${state} and asks nothing`);
  const { request_id } = asked;
  await client.sendFollowup({
    params: { runId },
    body: { decision, request_id, ...(message === undefined ? {} : { message }) },
  });
  const done = decision === 'approve' ? 'approved' : 'denied';
  context.out(`${done}: ${harmlessLine(asked.title, 200)}\nfollow: bin/runyard logs ${runId} --follow\n`);
}
