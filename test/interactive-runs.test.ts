/**
 * Tests runs to which people send messages and answers. All suites of `interactive-runs/` use one system; no suite changes data that
 * another suite reads.
 */
import { afterAll, afterEach } from 'vitest';
import { type FakeGitHost, startFakeGitHost } from './fakes/git-host.ts';
import { defaultScript } from './fakes/models/turns.ts';
import { describeApprovals } from './interactive-runs/approvals.ts';
import { describeContinuations } from './interactive-runs/continuations.ts';
import { describeFanOut } from './interactive-runs/fan-out.ts';
import { describeFollowUps } from './interactive-runs/followups.ts';
import { describeHeldPushes } from './interactive-runs/held-pushes.ts';
import { describePlanMode } from './interactive-runs/plan-mode.ts';
import { describeSystemWithModels, endsWithWorker, later } from './support/describe-system.ts';

let host: FakeGitHost | undefined;
afterAll(async () => await host?.close());

const options = async () => {
  host = await startFakeGitHost();
  return {
    env: {
      RUNYARD_CODE_HOST_URL: host.template,
      RUNYARD_WORKER_SLOTS: '2',
      RUNYARD_WORKSPACE_MB: '5',
      ...endsWithWorker,
    },
  };
};

describeSystemWithModels('interactive runs', options, (system, models) => {
  afterEach(() => models.script(defaultScript));

  describeFollowUps(system, models);
  describeApprovals(system, models);
  describeHeldPushes(
    system,
    later(() => host),
  );
  describePlanMode(system);
  describeFanOut(system);
  describeContinuations(
    system,
    later(() => host),
  );
});
