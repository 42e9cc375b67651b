/** Tests runs with language models. All suites of `model-runs/` use one system; no suite changes data that another suite checks. */
import { afterEach } from 'vitest';
import { defaultScript } from './fakes/models/turns.ts';
import { describeDebugWindow } from './model-runs/debug-window.ts';
import { describeImages } from './model-runs/images.ts';
import { describeMcp } from './model-runs/mcp.ts';
import { describeModels } from './model-runs/models.ts';
import { describeSystemWithModels } from './support/describe-system.ts';

/** The service must be able to reach the MCP servers of the tests, which listen on loopback. */
const env = { RUNYARD_WORKER_SLOTS: '2', RUNYARD_ALLOW_PRIVATE_NETWORKS: '127.0.0.0/8' };

describeSystemWithModels('runs with models', { env }, (system, models) => {
  afterEach(() => models.script(defaultScript));

  describeModels(system, models);
  describeImages(system, models);
  describeDebugWindow(system, models);
  describeMcp(system, models);
});
