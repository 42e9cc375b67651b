import type { Settings } from '@runyard/contract/settings/settings';
import type { BackendKind } from '../sandboxes/backend-kind.ts';
import { bubblewrap, gvisor } from '../sandboxes/bubblewrap/kind.ts';
import { docker } from '../sandboxes/docker/kind.ts';
import { kubernetes } from '../sandboxes/kubernetes/kind.ts';
import { none } from '../sandboxes/none/kind.ts';

/** The backends. The keys are the values that the setting `RUNYARD_SANDBOX` accepts. */
export const backends: Readonly<Record<Settings['RUNYARD_SANDBOX'], BackendKind>> = {
  auto: bubblewrap,
  bubblewrap,
  gvisor,
  docker,
  kubernetes,
  none,
};
